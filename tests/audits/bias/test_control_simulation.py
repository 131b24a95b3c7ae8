"""The simulation of the bias controls breaks what it says it breaks."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.bias.grid.controls.exchanges import LIMITS, unlike_right_ones

ROOT = Path(__file__).resolve().parents[3]


def alone(*figures: str) -> set[str]:
    """What is also asked about one factor with the other's share removed."""
    return {f"{figure} of {factor} alone" for figure in figures for factor in ("templates", "word pairs")}


CONTRAST, GROUP_SCORE = ("contrast", "interval of the contrast"), "interval of the group score"
COUNTED = {
    "the contrast": {*CONTRAST, "sign flips", *alone(*CONTRAST)},
    "the equivalence": {"equivalence"},
    "the disparity": {"disparity"},
    "the permutation": {"permutation"},
    "the group score": {GROUP_SCORE, *alone(GROUP_SCORE)},
    "every test": {*LIMITS, *alone(*CONTRAST, GROUP_SCORE)},
}


@pytest.mark.parametrize("what", COUNTED)
def test_the_simulation_breaks_the_test_that_it_names(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "controls"))
    for name in ("bias", "designs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    counted = import_module("bias").counted
    rng = np.random.default_rng(1)
    table = 0.5 * rng.normal(size=(6, 1)) + 0.5 * rng.normal(size=(1, 6)) + 0.8 * rng.normal(size=(6, 6))
    with counted(what, 2, 2):
        found = unlike_right_ones(table, 1)
    assert {sentence.partition(":")[0] for sentence in found} == COUNTED[what]
    assert unlike_right_ones(table, 1) == []
