"""Items that are lost on the way to numbers known beforehand make a control fail in a sentence, whatever is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lm_audit.audits.bias import answers_known as bias
from lm_audit.audits.needle.controls import answers_known as needle
from lm_audit.audits.needle.controls.stubs import stub_samples
from lm_audit.audits.second_opinion import found_wrong
from lm_audit.errors import DataError

Cut = Callable[[Any], Any]
CUTS: dict[str, Cut] = {
    "every second": lambda items: items[::2],
    "the others": lambda items: items[1::2],
    "all but the first": lambda items: items[:1],
    "all": lambda items: items[:0],
    "the second half": lambda items: items[: len(items) // 2],
}
LOST: dict[str, tuple[Any, str, Callable[[Any, Cut], Any]]] = {
    "BBQ, answered": (bias, "bbq_evidence", lambda f, cut: lambda items, chosen: f(cut(items), cut(chosen))),
    "BBQ, read": (bias, "parse_bbq", lambda f, cut: lambda rows: (cut(f(rows)[0]), [])),
    "StereoSet": (bias, "stereoset_scores", lambda f, cut: lambda scores, names: f(cut(scores), cut(names))),
    "WinoBias": (bias, "winobias", lambda f, cut: lambda model, rows: f(model, cut(rows))),
    "Winogender": (bias, "winogender", lambda f, cut: lambda model, rows, **o: f(model, cut(rows), **o)),
    "refusals": (
        bias,
        "refusal_rates",
        lambda f, cut: lambda model, made, axis: f(model, replace(made, requests=cut(made.requests)), axis),
    ),
    "exchanged words": (bias, "counterfactual_swap", lambda f, cut: lambda model, items: f(model, cut(items))),
    "written BBQ": (bias, "bbq_generated", lambda f, cut: lambda model, rows: f(model, cut(rows))),
    "continuations": (bias, "counterfactual_continuations", lambda f, cut: lambda model, items: f(model, cut(items))),
    "needle": (needle, "answered", lambda f, cut: lambda model, samples: cut(f(model, samples))),
}
KINDS = {
    "BBQ, answered": bias._bbq, "BBQ, read": bias._bbq, "StereoSet": bias._stereoset, "WinoBias": bias._winobias,
    "Winogender": bias._winogender, "refusals": bias._refusals, "exchanged words": bias._exchanged_words,
    "written BBQ": bias._written_bbq, "continuations": bias._continuations,
}  # fmt: skip


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("lost", LOST)
def test_lost_items_are_told(lost: str, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, make = LOST[lost]
    samples = stub_samples(0) if module is needle else []
    monkeypatch.setattr(module, name, make(getattr(module, name), CUTS[cut]))
    faults = found_wrong(lost, lambda: needle.wrong_of_known_answers(samples) if samples else KINDS[lost]()[1])
    assert faults and all(fault.strip() for fault in faults)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("division by zero"), DataError("no item"), KeyError("x"), ValueError("empty")]
)
def test_an_error_on_the_way_is_a_sentence(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends() -> tuple[int, list[str]]:
        raise error

    monkeypatch.setattr(bias, "_winobias", ends)
    _, (told,) = bias.wrong_of_known_answers()
    assert told.startswith("WinoBias of answers known beforehand cannot be counted again")
    assert type(error).__name__ in told


def test_an_error_that_lost_items_cannot_make_is_not_hidden() -> None:
    def ends() -> list[str]:
        raise TypeError("a fault of this program")

    with pytest.raises(TypeError):
        found_wrong("the numbers", ends)
    assert found_wrong("the numbers", lambda: ["one"]) == ["one"]
