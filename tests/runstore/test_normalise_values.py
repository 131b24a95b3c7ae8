"""What a value becomes when it is recorded."""

from __future__ import annotations

import json
import math
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from lm_audit.errors import StoreError
from lm_audit.runstore.normalise import plain, restored


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array(3), 3),
        ((1, 2), [1, 2]),
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        ({"k": (None, True)}, {"k": [None, True]}),
        (np.float64("nan"), {"$float": "nan"}),
        (-math.inf, {"$float": "-inf"}),
        (10**30, 10**30),
        ("\ud800 lone", "\ud800 lone"),
    ],
)
def test_becomes_plain_json(value: object, expected: object) -> None:
    assert plain(value) == expected
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected
    assert type(plain(value)) in (bool, int, float, str, list, dict, type(None))


def test_torch_scalars_become_numbers() -> None:
    torch = pytest.importorskip("torch")
    assert plain(torch.tensor(0.25, dtype=torch.bfloat16)) == 0.25
    assert plain(torch.tensor(True)) is True


def test_infinity_comes_back() -> None:
    assert restored(plain({"x": [math.inf, 1.0]})) == {"x": [math.inf, 1.0]}
    assert math.isnan(restored(plain(math.nan)))


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), np.array([1, 2]), {1: "int key"}, 1j])
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(StoreError, match=r"scores\.inner"):
        plain({"inner": value}, "scores")
