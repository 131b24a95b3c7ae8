"""Gates that no selected case will be held against are told before a model loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from lm_audit.gates.gate import Gate
from lm_audit.plugin.audit_cases.selection import Selection
from lm_audit.plugin.options.gates_in_vain import gates_in_vain
from lm_audit.plugin.options.model_choice import parse_choices

SHIPPED = Path(__file__).resolve().parents[3] / "evals" / "test_needle.py"
OWN = Path("mine") / "test_mine.py"


class MadeItem:
    """What is asked of a collected case: its id, its file, its marker and its model."""

    def __init__(self, case: str, audit: str | None, path: Path):
        [model] = parse_choices(["a=tiny"])
        self.nodeid, self.path, self.audit = f"{path.name}::test_x[a@cpu-{case}]", path, audit
        self.callspec = type("CallSpec", (), {"params": {"lm_audit_case": Selection(model=model, device="cpu")}})

    def iter_markers(self) -> Iterator[Any]:
        return iter([] if self.audit is None else [type("Mark", (), {"name": self.audit})])


def cases(*made: tuple[str, str | None, Path]) -> list[pytest.Item]:
    return [cast(pytest.Item, MadeItem(*one)) for one in made]


NEEDLE = ("en", "needle", SHIPPED)


@pytest.mark.parametrize(
    ("gate", "selected", "said"),
    [
        (Gate("needle.acuracy"), [NEEDLE], "needle has no metric 'needle.acuracy'; did you mean 'needle.accuracy'?"),
        (Gate("needle.acuracy"), [("en", "needle", OWN)], "did you mean 'needle.accuracy'?"),
        (Gate("needle.nothing_such"), [NEEDLE], "needle has no metric 'needle.nothing_such'"),
        (Gate("gates.needle.accuracy"), [NEEDLE], "no audit is called 'gates'"),
        (Gate("roc_auc"), [NEEDLE], "no audit is called 'roc_auc'"),
        (Gate("needle.accuracy", cases="["), [NEEDLE], "cases = '[' matches none of the cases that are selected"),
        (Gate("needle.accuracy", cases="*zh*"), [NEEDLE], "such as test_needle.py::test_x[a@cpu-en]"),
        (Gate("needle.accuracy", cases="*zh*", models=("a",)), [NEEDLE], "matches none"),
        (Gate("needle.accuracy", cases="a\0b"), [NEEDLE], "matches none"),
    ],
)
def test_told(gate: Gate, selected: list[tuple[str, str | None, Path]], said: str) -> None:
    [line] = gates_in_vain([gate], cases(*selected), "gates.toml")
    assert line.startswith(f"gates file gates.toml, [{gate.metric}]: ") and said in line


@pytest.mark.parametrize(
    ("gate", "selected"),
    [
        (Gate("needle.accuracy"), [NEEDLE]),
        (Gate("needle.accuracy.L4096"), [NEEDLE]),
        (Gate("needle.accuracy", cases="*en"), [NEEDLE]),
        (Gate("needle.accuracy", cases="*en"), [NEEDLE, ("zh", "needle", SHIPPED)]),
        (Gate("needle.accuracy", cases="test_needle.py::test_x[[]a@cpu-en]"), [NEEDLE]),
        (Gate("needle.accuracy", cases="*zh*", models=("b",)), [NEEDLE]),
        (Gate("bias.max_min_disparity", cases="*zh*"), [NEEDLE]),
        (Gate("needle.of_my_own"), [("en", "needle", OWN)]),
        (Gate("needle.of_my_own"), [NEEDLE, ("en", "needle", OWN)]),
        (Gate("mine.gap"), [("en", None, OWN)]),
    ],
)
def test_not_told(gate: Gate, selected: list[tuple[str, str | None, Path]]) -> None:
    assert gates_in_vain([gate], cases(*selected), "gates.toml") == []


def test_a_part_of_a_run_need_not_reach_every_glob() -> None:
    assert gates_in_vain([Gate("needle.accuracy", cases="*zh*")], cases(NEEDLE), "gates.toml", whole=False) == []
