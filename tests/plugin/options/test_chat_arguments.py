"""``--chat-args`` that no template of the run reads are refused before any case runs, or told where nobody can know."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.errors import UsageError
from lm_audit.models.text.template_variables import reads
from lm_audit.plugin.options.chat_arguments import refuse_unread_arguments, unknown_templates
from lm_audit.plugin.options.model_choice import ModelChoice
from lm_audit.plugin.options.run_options import RunOptions
from tests.models.small_models import put_in_hub_cache, save_small_llama

THINKS = (
    "{# old_name #}{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    "{{ 'enable_thinkin' }}{% if enable_thinking is not defined %}<think>{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "name", "read"),
    [
        (THINKS, "enable_thinking", True),
        (THINKS, "enable_thinkin", False),  # a word of a text
        (THINKS, "old_name", False),  # of a comment
        (THINKS, "content", False),  # of a message
        ("{% set date = 'today' %}{{ date }}", "date", False),  # always set before it is read
        ("{% if not date is defined %}{% set date = 1 %}{% endif %}{{ date }}", "date", True),
        ("{% set x = x or 3 %}{{ x }}", "x", True),
        ("{% for x in [1] %}{{ x }}{% endfor %}", "x", False),
        ("{% macro f(a) %}{{ a }}{{ b }}{% endmacro %}{{ f(c) }}", "a", False),
        ("{% macro f(a) %}{{ a }}{{ b }}{% endmacro %}{{ f(c) }}", "b", True),
        ("{% macro f(a) %}{{ a }}{{ b }}{% endmacro %}{{ f(c) }}", "c", True),
        ("{% set ns = namespace(deep=reasoning) %}{{ ns.deep }}", "reasoning", True),
        ("{% set ns = namespace(deep=reasoning) %}{{ ns.deep }}", "deep", False),
        ("{% for m in messages %}{% if stop %}{% break %}{% endif %}{% endfor %}", "stop", True),
        ("{% if %} broken word", "word", True),  # what cannot be parsed fails elsewhere, with its own words
    ],
)
def test_arguments_are_what_the_syntax_reads(template: str, name: str, read: bool) -> None:
    assert reads(template, name) is read


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("templates")
    for name, template in (("thinks", THINKS), ("plain", "{{ messages[0].content }}"), ("bare", None)):
        save_small_llama(base / name)
        if template is None:
            (base / name / "chat_template.jinja").unlink()
        else:
            (base / name / "chat_template.jinja").write_text(template)
    return base


def options(folders: Path, *names: str, **arguments: object) -> RunOptions:
    models = tuple(ModelChoice(name, str(folders / name)) for name in names)
    return RunOptions(models=models, chat_args=arguments)


def test_a_misspelt_argument_is_refused_before_any_case_runs(folders: Path) -> None:
    refuse_unread_arguments(options(folders, "thinks", enable_thinking=False))
    refuse_unread_arguments(options(folders, "thinks", "bare", enable_thinking=False))
    refuse_unread_arguments(options(folders, "plain"))
    with pytest.raises(UsageError, match=r"--chat-args enable_thinkin: .* of model thinks reads no such argument"):
        refuse_unread_arguments(options(folders, "thinks", enable_thinkin=False))
    with pytest.raises(UsageError, match=r"of model plain reads no such argument"):
        refuse_unread_arguments(options(folders, "thinks", "plain", enable_thinking=False))
    with pytest.raises(UsageError, match=r"no model of this run has a chat template \(bare\)"):
        refuse_unread_arguments(options(folders, "bare", enable_thinking=False))


def test_a_cached_model_of_the_hub_is_asked_and_an_absent_one_left_to_loading(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    put_in_hub_cache(tmp_path, "org/thinks", {"main": folders / "thinks"})
    cached = RunOptions(models=(ModelChoice("m", "org/thinks"),), chat_args={"enable_thinkin": 1})
    with pytest.raises(UsageError, match="of model m reads no such argument"):
        refuse_unread_arguments(cached)
    refuse_unread_arguments(RunOptions(models=(ModelChoice("m", "org/absent"),), chat_args={"enable_thinkin": 1}))


def test_the_template_of_a_server_is_said_to_be_unknown() -> None:
    served = ModelChoice("far", "openai:far@http://127.0.0.1:1/v1")
    told = RunOptions(models=(served, ModelChoice("tiny", "tiny")), chat_args={"enable_thinkin": False})
    assert list(unknown_templates(told)) == [
        "--chat-args enable_thinkin: the chat template of far is its server's; whether it reads them is not known "
        "here, and a misspelt one changes nothing"
    ]
    assert list(unknown_templates(RunOptions(models=(served,)))) == []
