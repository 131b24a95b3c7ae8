"""Chat templates: arguments, thoughts that a template opens, and what a template may do wrong."""

from __future__ import annotations

import re
import resource
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import ModelError, UsageError
from lm_audit.models import LanguageModel
from lm_audit.models.text import bounded
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.chat import ChatSettings, ChatTemplate, in_template, parse_chat_arguments
from lm_audit.models.text.tokenizer import Tokenizer
from tests.models.pretrained import pretrained_tokenizer
from tests.models.small_models import small_llama

TURNS = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
THINKS = TURNS + "assistant: {% if enable_thinking is not defined or enable_thinking %}<think>\n{% else %}-{% endif %}"
USER = [{"role": "user", "content": "Hello"}]


def with_template(template: str | None) -> Tokenizer:
    tokenizer = byte_tokenizer(512)
    pretrained_tokenizer(tokenizer).chat_template = template
    return tokenizer


def model_with(template: str | None, **settings: Any) -> LanguageModel:
    model = LanguageModel(small_llama(context=512), with_template(template), name="small")
    model.chat_settings = ChatSettings(**settings)
    return model


class TestArguments:
    @pytest.mark.parametrize(
        ("entry", "value"),
        [
            ("a=false", False),
            ("a=False", False),
            ("a=3", 3),
            ("a=high", "high"),
            ('a="3"', "3"),
            ('a={"b": [1]}', {"b": [1]}),
            ("a=", ""),
            ("a=x=y", "x=y"),
            ("a=None", None),
        ],
    )
    def test_values_have_types(self, entry: str, value: Any) -> None:
        assert parse_chat_arguments([entry]) == {"a": value}

    @pytest.mark.parametrize("entry", ["a", "=1", "a b=1", "messages=[]", "add_generation_prompt=false", "a=NaN"])
    def test_what_no_template_could_read_is_refused(self, entry: str) -> None:
        with pytest.raises(UsageError, match="--chat-args"):
            parse_chat_arguments([entry])

    def test_a_key_given_twice_is_refused(self) -> None:
        with pytest.raises(UsageError, match="given twice"):
            parse_chat_arguments(["a=1", "a=2"])

    def test_they_reach_the_template(self) -> None:
        assert ChatTemplate(with_template(THINKS)).render(USER).endswith("<think>\n")
        assert ChatTemplate(with_template(THINKS), {"enable_thinking": False}).render(USER).endswith("assistant: -")

    def test_an_argument_that_the_template_never_reads_is_refused(self) -> None:
        with pytest.raises(UsageError, match=r"enable_thinkin: .*reads no such argument"):
            ChatTemplate(with_template(THINKS), {"enable_thinkin": False})

    @pytest.mark.parametrize(
        ("test", "value", "taken"),
        [
            ("enable_thinking is not defined or enable_thinking", "off", "true"),
            ("enable_thinking is not defined or enable_thinking", "false,effort=low", "true"),
            ("enable_thinking is not defined or enable_thinking is not false", "no", "true"),
            ("enable_thinking is not defined or enable_thinking is not false", 0, "true"),
            ("enable_thinking is defined and enable_thinking is true", "yes", "false"),
            ("enable_thinking is defined and enable_thinking is true", 1, "false"),
        ],
    )
    def test_a_value_that_a_switch_takes_whatever_it_says_is_refused(
        self, test: str, value: object, taken: str
    ) -> None:
        template = TURNS + "assistant: {% if " + test + " %}<think>\n{% endif %}"

        with pytest.raises(UsageError, match=rf"takes that for {taken}, whatever it says; write enable_thinking=true"):
            ChatTemplate(with_template(template), {"enable_thinking": value})

    @pytest.mark.parametrize(
        ("template", "value"),
        [
            ("Effort: {{ a }}", "high"),
            ("{% if a == 'off' %}-{% else %}<think>{% endif %}", "off"),
            ("{% if a not in ['low', 'high'] %}{{ raise_exception('effort') }}{% endif %}{{ a }}", "low"),
            ("{% if a %}<think>{% endif %}", 1),
            ("{% if a %}<think>{% endif %}", 0),
            ("{% if a == 0 %}no thought{% endif %}", 512),
            ("{% if a %}Mind {{ a[0] }}{% endif %}", ["this"]),
        ],
    )
    def test_other_values_are_the_templates_own(self, template: str, value: object) -> None:
        assert ChatTemplate(with_template(TURNS + template), {"a": value}).around_user

    def test_they_reach_generation(self) -> None:
        opens, shut = model_with(THINKS), model_with(THINKS, arguments={"enable_thinking": False})

        assert opens.generate(["Hi"], max_new_tokens=3, chat=True)[0].answer is None
        assert shut.generate(["Hi"], max_new_tokens=3, chat=True)[0].thought is None

    def test_settings_tell_remembered_replies_apart(self) -> None:
        keys = {ChatSettings().key, ChatSettings({"a": 1}).key, ChatSettings({"a": "1"}).key, ChatSettings({}, 0).key}

        assert len(keys) == 4 and ChatSettings({"a": 1, "b": 2}).key == ChatSettings({"b": 2, "a": 1}).key


class TestOpenedThoughts:
    def test_a_template_that_opens_the_thought_is_known(self) -> None:
        assert ChatTemplate(with_template(THINKS)).opened is not None
        assert ChatTemplate(with_template(TURNS + "<think>\n\n</think>\n")).opened is None

    def test_what_the_user_says_opens_none(self) -> None:
        model = model_with(TURNS + "assistant:")

        (found,) = model.generate(["Explain <think>"], max_new_tokens=3, chat=True)

        assert found.opened is None

    def test_the_answer_begins_behind_the_closed_thought(self) -> None:
        model = model_with(THINKS)

        assert model.render_chat("Hi").endswith("assistant: <think>\n")
        assert model.render_chat("Hi", answering=True).endswith("assistant: <think>\n</think>\n\n")

    def test_the_settings_budget_holds_in_generation(self) -> None:
        model = model_with(THINKS, thinking_tokens=4)

        (found,) = model.generate(["Hi"], max_new_tokens=3, chat=True)

        assert found.thought_cut and found.answer is not None
        assert not model.generate(["Hi"], max_new_tokens=3)[0].thought_cut


class TestFailures:
    @pytest.mark.parametrize(
        "template",
        [
            "{{ raise_exception('roles must alternate') }}",
            "{{ messages[3]['content'] }}",
            "{{ nothing.at.all }}",
            "{% if %}",
            "{{ messages[0]['content'] + 1 }}",
        ],
    )
    def test_a_template_that_fails_is_a_clear_error(self, template: str) -> None:
        with pytest.raises(ModelError, match="the chat template of model small fails on a conversation"):
            model_with(template).generate(["Hi"], max_new_tokens=1, chat=True)

    @pytest.mark.parametrize(
        "template",
        [
            "assistant:",
            "{% for m in messages %}{% if m['role'] == 'human' %}{{ m['content'] }}{% endif %}{% endfor %}bot:",
            "{% for m in messages %}{{ m['content'] }}{{ m['content'] }}{% endfor %}",
        ],
    )
    def test_a_template_without_the_users_turn_is_a_clear_error(self, template: str) -> None:
        with pytest.raises(ModelError, match="does not show the user's turn exactly once"):
            model_with(template).render_chat("Hi")

    @pytest.mark.parametrize(
        "said",
        [
            "{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% else %}<image>{% endif %}{% endfor %}",
            "{{ m['content'][0]['text'] }}",
            "{{ m['content'] | selectattr('type', 'equalto', 'text') | map(attribute='text') | join }}",
        ],
    )
    def test_a_template_that_takes_a_text_in_parts_alone(self, said: str) -> None:
        model = model_with("{% for m in messages %}" + f"<{{{{ m.role }}}}>{said}" + "{% endfor %}<assistant>")

        turns = [*USER, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Bye"}]
        assert model.chat_template.render(turns) == "<user>Hello<assistant>Hi<user>Bye<assistant>"
        assert len(model.generate(["Hi"], max_new_tokens=1, chat=True)) == 1

    def test_a_template_that_draws_is_a_clear_error(self) -> None:
        with pytest.raises(ModelError, match="another prompt each time"):
            model_with(TURNS + "{{ range(99999) | random }}").render_chat("Hi")

    def test_no_template(self) -> None:
        with pytest.raises(UsageError, match="small has no chat template; use --chat off"):
            model_with(None).render_chat("Hi")


class TestBounds:
    """A template takes no more of this process than a conversation can need, whatever it does."""

    @pytest.mark.parametrize(
        "template",
        [
            "{{ 'ab' * 10**11 }}",
            "{{ 'x'.rjust(10**11) }}",
            "{{ '%099999999999d' % 3 }}",
            "{{ '{:>99999999999}'.format(1) }}",
            "{{ ['a'] * 10**11 }}",
            "{{ 'x' | center(10**11) }}",
            "{{ {'a': 1} | tojson(indent=10**11) }}",
            "{% set n = namespace(t='abcd') %}{% for i in range(60) %}{% set n.t = n.t ~ n.t %}{% endfor %}{{ n.t }}",
            "{% for m in messages %}{{ m.content.replace('', 'y' * 10**8) }}{% endfor %}",
        ],
    )
    def test_memory(self, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bounded, "MEMORY", 64 << 20)
        model, before = model_with(TURNS + template), resource.getrlimit(resource.RLIMIT_AS)
        with pytest.raises(ModelError, match=r"template of model small takes more than 64 MiB .*--chat off"):
            model.render_chat("Hi")
        assert resource.getrlimit(resource.RLIMIT_AS) == before

    @pytest.mark.parametrize(
        "template",
        [
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "{{ 7 ** (7 ** 9) }}",
            "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
            "{{ range(99999) | map('string') | map('center', 99999) | list | length }}",
        ],
    )
    def test_time(self, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bounded, "SECONDS", 0.1)
        monkeypatch.setattr(bounded, "MEMORY", 64 << 20)
        model, before = model_with(template + TURNS), signal.getsignal(signal.SIGVTALRM)
        with pytest.raises(ModelError, match=r"does not come to an end|takes more than"):
            model.render_chat("Hi")
        begun = time.process_time()
        with pytest.raises(ModelError, match=r"does not come to an end|takes more than"):
            model.render_chat("Hello")  # each case asks again
        assert time.process_time() - begun < 0.05
        assert signal.getsignal(signal.SIGVTALRM) == before
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)

    def test_length(self) -> None:
        with pytest.raises(ModelError, match=r"makes 4,000,\d+ characters of a conversation of \d+; repair it"):
            model_with(TURNS + "{{ 'word ' * 800000 }}").render_chat("Hi")

    def test_the_file_of_the_template_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "chat_template.jinja").write_text(endless := TURNS + "{{ 'z' * 10**12 }}")
        tokenizer: Any = with_template(endless)
        tokenizer.name_or_path = str(tmp_path)
        with pytest.raises(ModelError, match=re.escape(str(tmp_path / "chat_template.jinja"))):
            ChatTemplate(tokenizer, name="m").render(USER)

    def test_long_texts_are_no_fault_of_the_template(self) -> None:
        text = "word " * 400_000
        assert len(ChatTemplate(with_template(TURNS)).render([{"role": "user", "content": text}])) > len(text)

    def test_several_threads_leave_the_limits_as_they_were(self) -> None:
        before = resource.getrlimit(resource.RLIMIT_AS)
        template = ChatTemplate(with_template(TURNS))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: [template.render(USER) for _ in range(20)], range(8)))
        assert resource.getrlimit(resource.RLIMIT_AS) == before


class TestMode:
    def test_auto_is_what_the_audit_does(self) -> None:
        has, lacks = with_template(TURNS), with_template(None)

        assert [in_template(has, "auto", default=mode) for mode in ("auto", "on", "off")] == [True, True, False]
        assert [in_template(lacks, "auto", default=mode) for mode in ("auto", "off")] == [False, False]
        assert in_template(has, "on", default="off") and not in_template(has, "off", default="on")

    def test_on_without_a_template_is_refused(self) -> None:
        with pytest.raises(UsageError, match="--chat on: the tokenizer of model m has no chat template"):
            in_template(with_template(None), "on", default="off", name="m")


@pytest.mark.parametrize(
    "template", ["{{ raise_exception('no') }}", "{% if %}", "{{ messages[0]['text'].upper() }}", "no turn at all"]
)
def test_a_broken_template_is_told_by_the_tokenizer_alone(template: str) -> None:
    from lm_audit.plugin.options.run_options import RunOptions

    for options in (RunOptions(chat="on"), RunOptions()):
        with pytest.raises(ModelError, match="use --chat off"):
            options.in_template(with_template(template), default="auto")
    assert not RunOptions(chat="off").in_template(with_template(template), default="auto")
