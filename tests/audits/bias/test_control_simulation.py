"""The simulation of the bias controls breaks what it says it breaks."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.bias.grid.controls.exchanges import LIMITS, unlike_right_ones

ROOT = Path(__file__).resolve().parents[3]

COUNTED = {
    "the contrast": {"contrast", "interval of the contrast", "sign flips"},
    "the equivalence": {"equivalence"},
    "the disparity": {"disparity"},
    "the permutation": {"permutation"},
    "the group score": {"interval of the group score"},
    "every test": set(LIMITS),
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
