"""One meaning a word, over all that the packages export: seeds, inputs, progress, records of options, Evidence."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import lm_audit
from lm_audit.audits import faithfulness
from lm_audit.errors import UsageError

PACKAGES = ["lm_audit", *(m.name for m in pkgutil.walk_packages(lm_audit.__path__, "lm_audit.") if m.ispkg)]
EXPORTED: dict[str, Any] = {
    f"{package}.{name}": getattr(module, name)
    for package in PACKAGES
    for module in [importlib.import_module(package)]
    for name in getattr(module, "__all__", ())
}
FUNCTIONS: dict[str, Callable[..., Any]] = {n: value for n, value in EXPORTED.items() if inspect.isfunction(value)}
PARAMETERS = [
    (name, parameter) for name, value in FUNCTIONS.items() for parameter in inspect.signature(value).parameters.values()
]
RECORDS = [value for value in EXPORTED.values() if inspect.isclass(value) and dataclasses.is_dataclass(value)]


def test_every_seed_is_a_keyword_and_0_unless_given() -> None:
    seeds = [(name, parameter) for name, parameter in PARAMETERS if parameter.name == "seed"]
    assert len(seeds) > 40
    odd = {name: str(one) for name, one in seeds if one.default != 0 or one.kind is not one.KEYWORD_ONLY}
    assert odd == {}
    records = [field for one in RECORDS for field in dataclasses.fields(one) if field.name in ("seed", "random_seed")]
    assert all(field.default == 0 for field in records if field.default is not dataclasses.MISSING)


def test_what_resamples_takes_a_seed() -> None:
    """Or, where it goes on with an audit's evidence, the seed of that."""
    drawing = {name for name, parameter in PARAMETERS if parameter.name == "n_resamples"}
    assert len(drawing) > 15
    seeded = {name for name, parameter in PARAMETERS if parameter.name in ("seed", "evidence")}
    assert drawing - seeded == set()


def test_randomness_has_no_other_name() -> None:
    other = {"random_state", "rng", "generator", "seeds", "random_seed"}
    assert [name for name, parameter in PARAMETERS if parameter.name in other] == []


def test_what_a_model_is_asked_is_called_model_and_comes_first() -> None:
    hints = {name: inspect.signature(value).parameters for name, value in FUNCTIONS.items()}
    typed = {n: [p.name for p in ps.values() if p.annotation == "LanguageModel"] for n, ps in hints.items()}
    asked = {name: names for name, names in typed.items() if names}
    assert len(asked) > 25
    assert {
        name: names for name, names in asked.items() if names != ["model"] or next(iter(hints[name])) != "model"
    } == {}


@pytest.mark.parametrize("audit", ["bias", "leakage", "needle", "privacy", "faithfulness"])
def test_every_audit_takes_a_model_and_answers_with_evidence(audit: str) -> None:
    """A model is a ``LanguageModel`` (or a stand-in that answers), stages are models by name; never a name alone."""
    own = {name: value for name, value in FUNCTIONS.items() if name.startswith(f"lm_audit.audits.{audit}.")}
    asked = {name: inspect.signature(value) for name, value in own.items()}
    audits = {name: next(iter(one.parameters.values())) for name, one in asked.items()
              if one.return_annotation == "Evidence"}  # fmt: skip
    taken = {name for name, first in audits.items() if first.annotation.startswith("LanguageModel")}
    staged = {name for name, first in audits.items() if first.annotation == "Mapping[str, StageSource]"}
    assert taken | staged
    models = {n: str(p.annotation) for n, s in asked.items() for p in s.parameters.values() if p.name == "model"}
    assert {name: kind for name, kind in models.items() if not kind.startswith("LanguageModel")} == {}
    bare = ("dict", "list[dict", "tuple[float", "float", "str", "None", "Any")
    loose = {n: str(s.return_annotation) for n, s in asked.items() if n in models}
    assert {name: kind for name, kind in loose.items() if kind.startswith(bare)} == {}


def test_rows_as_they_are_read_are_called_rows_and_files_path_or_source() -> None:
    barred = {"path_or_hub_id", "filename", "file_path", "filepath", "folder_path", "data", "dataset", "examples"}
    found = {name for name, parameter in PARAMETERS if parameter.name in barred and ".audits." in name}
    assert found == set()
    records = {name: p.name for name, p in PARAMETERS if p.annotation == "Iterable[Mapping[str, object]]"}
    assert len(records) >= 6 and set(records.values()) == {"rows"}


def test_one_thing_has_one_name() -> None:
    """What several functions are asked for bears one name in all of them."""
    # Values of one sample, those of two, a level of significance, what a chat template is given.
    others = {"x": "a", "y": "b", "data": "values", "sample": "values", "alpha": "level", "arguments": "chat_args",
              "template_args": "chat_args", "resamples": "n_resamples", "n_boot": "n_resamples",
              "ci": "confidence", "conf_level": "confidence"}  # fmt: skip
    assert {name: p.name for name, p in PARAMETERS if p.name in others} == {}
    arrays = {name: [p.name for n, p in PARAMETERS if n == name and p.annotation == "ArrayLike"] for name in FUNCTIONS}
    of_groups = {name: names for name, names in arrays.items() if {"members", "controls", "first", "second"} & {*names}}
    assert of_groups == {}
    for word, usual in (("level", 0.05), ("confidence", 0.95)):
        given = [p.default for _, p in PARAMETERS if p.name == word and p.default is not p.empty]
        assert given and set(given) == {usual}


def test_one_word_of_options_has_one_meaning() -> None:
    """Where functions share a word of few meanings, they share its type."""
    shared = {"bos": "Bos", "chat": "bool", "lenient": "bool", "cut": "Cut", "opening": "str"}
    for word, annotation in shared.items():
        used = {name: str(p.annotation) for name, p in PARAMETERS if p.name == word}
        assert used and set(used.values()) == {annotation}, word
    assert {p.default for name, p in PARAMETERS if p.name == "bos"} == {"default"}
    single = {name: str(p.annotation) for name, p in PARAMETERS if p.name == "path" and p.annotation == "Path"}
    assert {name for name in single if ".shared." not in name} == set()  # A text names a file as well.


def test_progress_is_told_in_one_way() -> None:
    """(done, total, tokens), as ``OnProgress`` has it; what is done has calls of its own."""
    told = {"on_progress", "on_message", "on_rows", "on_cell", "on_item"}
    callbacks = {
        p.name for _, p in PARAMETERS if p.name.startswith("on_") or p.name in ("progress", "report", "callback")
    }
    assert callbacks <= told
    from lm_audit.audits.privacy.training import dpo, loop, sft
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.plugin.record.evidence_fixture import Recorder
    from lm_audit.shared.progress import OnProgress

    for function in (dpo.train_preferences, loop.run_steps, sft.train_texts):
        assert get_type_hints(function)["on_progress"] == OnProgress | None
    for owner in (LanguageModel, Recorder):
        assert "self.on_progress: OnProgress | None" in inspect.getsource(owner.__init__)


@pytest.mark.parametrize("audit", ["bias", "leakage", "needle", "privacy", "faithfulness"])
def test_no_two_audits_export_one_word(audit: str) -> None:
    own = {name.rpartition(".")[2] for name in EXPORTED if name.startswith(f"lm_audit.audits.{audit}.")}
    others = {
        name.rpartition(".")[2]: value
        for name, value in EXPORTED.items()
        if name.startswith("lm_audit.audits.") and not name.startswith(f"lm_audit.audits.{audit}.")
    }
    twice = {name for name in own & others.keys() if EXPORTED[f"lm_audit.audits.{audit}.{name}"] is not others[name]}
    assert twice == set()


METHOD_RECORDS: list[Any] = list(faithfulness.OPTIONS.values())


def frozen(record: Any) -> bool:
    """Whether a data class is one whose fields cannot be set."""
    return bool(record.__dataclass_params__.frozen)


def test_records_of_options_are_frozen() -> None:
    names = ("Options", "Settings", "Config")
    options = [value for value in EXPORTED.values() if inspect.isclass(value) and value.__name__.endswith(names)]
    loose = [one.__name__ for one in options if dataclasses.is_dataclass(one) and not frozen(one)]
    assert loose == []


class TestMethodOptions:
    """The options of attribution methods stand once: a frozen record a method, and keywords that build it."""

    def test_every_method_has_a_record(self) -> None:
        assert set(faithfulness.OPTIONS) == set(faithfulness.METHODS)
        for record in faithfulness.OPTIONS.values():
            assert frozen(record) and issubclass(record, faithfulness.MethodOptions)
            record()

    def test_keywords_are_the_fields_of_the_records(self) -> None:
        from lm_audit.audits.faithfulness.methods.method_options import Keywords

        fields = {field.name for record in METHOD_RECORDS for field in dataclasses.fields(record)}
        assert fields == set(Keywords.__annotations__)

    def test_one_name_has_one_default(self) -> None:
        defaults: dict[str, set[Any]] = {}
        for record in METHOD_RECORDS:
            for field in dataclasses.fields(record):
                defaults.setdefault(field.name, set()).add(field.default)
        assert {name: values for name, values in defaults.items() if len(values) > 1} == {}

    @pytest.mark.parametrize("method", faithfulness.METHODS)
    def test_what_a_method_does_not_read_is_refused(self, method: str) -> None:
        from lm_audit.audits.faithfulness.methods.method_options import READS, options_for

        other: dict[str, Any] = {
            "hops": 7, "eps": 0.5, "threshold": 0.5, "objective": "logprob", "reduce": "l2", "score_mode": "max",
            "negatives": "abs", "normalise": False, "weights": [1.0], "baseline": "pad", "points": 5, "tolerance": 0.1,
        }  # fmt: skip
        spans: dict[str, Any] = {"sink": (0, 0), "thinking": (0, 0), "explicit_sink": True}
        for name, value in other.items():
            if name in READS[method]:
                assert getattr(options_for(method, None, {name: value}, **spans), name) in (value, (1.0,))  # type: ignore[misc]
            else:
                with pytest.raises(UsageError, match=f"{name}=.* does nothing in {method}"):
                    options_for(method, None, {name: value}, **spans)  # type: ignore[misc]

    def test_a_record_gives_what_its_keywords_give(self) -> None:
        from lm_audit.audits.faithfulness.methods.method_options import options_for

        spans: dict[str, Any] = {"sink": (0, 1), "thinking": (0, 1), "explicit_sink": False}
        record = faithfulness.FlashTraceOptions(hops=3, threshold=0.1)
        assert options_for("flashtrace", record, {}, **spans) == options_for(
            "flashtrace", None, {"hops": 3, "threshold": 0.1}, **spans
        )
        for method, given, keywords in (
            ("ifr", record, {}),
            ("flashtrace", record, {"hops": 2}),
            ("flashtrace", None, {"hop": 2}),
        ):
            with pytest.raises(UsageError, match=r"FlashTraceOptions|IfrOptions|option of no method"):
                options_for(method, given, keywords, **spans)  # type: ignore[arg-type]
