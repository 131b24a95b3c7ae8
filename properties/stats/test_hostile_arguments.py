"""Every public statistic, each argument in turn something that it cannot be: its answer, or a ``UsageError``.

Text, objects, complex numbers, dates, ragged and masked arrays, other shapes, numbers beyond all floats: never a
library's exception, a warning, a NaN in the answer, or a number made of what is none.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lm_audit.stats as hs
from lm_audit.errors import UsageError
from lm_audit.stats import Estimate

V = [0.3, 1.2, -0.5, 2.0, 0.9, -1.1, 0.4, 1.7, 0.2, -0.8, 1.0, 0.6]
W = [0.5 * v + 0.1 * k for k, v in enumerate(V)]
YES, YES_TOO = [0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1], [1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1]
CLUSTERS = [*"aabbccddeeff"]
TABLE = np.arange(48.0).reshape(6, 8) % 7
GROUPS = np.arange(108.0).reshape(3, 6, 6) % 11
SHARES = [0.1, 0.5, 0.2, 0.9, 1.0, 0.0, 0.3, 0.4]
LOSSES = np.linspace(0, 3, 40)
PATHS = [("a", "b"), ("a", "c")]

CALLS: dict[str, tuple[Any, ...]] = {
    "able": (PATHS, [0.01, 0.2]),
    "benjamini_hochberg": ([0.01, 0.2],),
    "bootstrap_ci": (V,),
    "bootstrap_clustered": (V, CLUSTERS),
    "bootstrap_crossed": (TABLE,),
    "bootstrap_paired": (V, W),
    "bootstrap_two_sample": (V, W, "roc_auc"),
    "bounded_mean": (SHARES,),
    "clopper_pearson": (3, 10),
    "clustered_mean": (V, CLUSTERS),
    "clustered_sign_flip": (TABLE,),
    "compare_independent": (V, W),
    "compare_paired": (V, W),
    "crossed_contrast": (TABLE, TABLE / 2),
    "crossed_equivalence": (TABLE, 0.5),
    "decide": (0.1, 0.4, 0.3),
    "delong_se": (V, W),
    "epsilon_from_rates": (5, 10, 1, 10, 1e-5),
    "equivalence_test": (V, 0.5),
    "even_rank_bits": (13,),
    "exposure_exact": (3, 10),
    "exposure_extrapolated": (V[:2], LOSSES),
    "exposure_sampled": (V, W),
    "family_weights": (PATHS,),
    "fit_skew_normal": (LOSSES,),
    "grid_mean_squares": (GROUPS,),
    "holm": ([0.01, 0.2],),
    "lira_offline": (0.3, V),
    "lira_online": (0.3, V, W),
    "mann_whitney_p": (V, W),
    "max_min": (GROUPS,),
    "max_min_permutation": (GROUPS,),
    "max_min_two_way": (GROUPS,),
    "mcnemar_exact": (YES, YES_TOO, CLUSTERS),
    "mean_exposure": (V, W),
    "mean_interval": (V, CLUSTERS),
    "one_run_epsilon": (60, 30, 25, 1e-5),
    "one_run_p_value": (60, 30, 25, 0.5, 1e-5),
    "paired_effect": (V, W),
    "permutation_test": (V, W),
    "power_auc": (0.7,),
    "power_paired_t": (0.7,),
    "power_two_sample_t": (0.7,),
    "pr_auc": (V, W),
    "roc_auc": (V, W),
    "secret_entropy_bits": (9, 10),
    "share": (YES, CLUSTERS),
    "share_difference": (3, 10, 4, 10),
    "share_limits": (0.3, 10),
    "sign_flip_test": (V,),
    "studentised_difference": (V, W),
    "studentised_mean": (V,),
    "tpr_at_fpr": (V, W, 0.1),
    "tpr_statistic": (0.1,),
    "two_way_mean": (TABLE,),
    "two_way_p_value": (TABLE,),
    "weighted_holm": ([0.01, 0.2], [0.5, 0.5]),
    "wilson": (3, 10),
    "within_margin": (0.1, 0.2, 0.5),
}
"""One call of each, its positional arguments."""

EVERY: dict[str, Any] = {"n_resamples": 19}
NO_NUMBERS: dict[str, Any] = {
    "text": "abc",
    "numbers as text": ["1", "2"] * 6,
    "a number as text among others": [*V[:-1], "0.6"],
    "bytes": [b"1"] * 12,
    "objects": [object()] * 12,
    "dictionaries": [{}] * 12,
    "complex": [1j] * 12,
    "complex arrays": np.ones(12, dtype=complex),
    "dates": np.array(["2020-01-01"] * 12, dtype="M8[D]"),
    "durations": np.arange(12).astype("m8[s]"),
    "ragged": [[1.0, 2.0], [3.0]],
    "beyond floats": [10**400] * 12,
    "records": np.zeros(12, dtype=[("a", float)]),
    "masked": np.ma.MaskedArray(V, mask=[True] + [False] * 11),
    "a masked table": np.ma.MaskedArray(TABLE, mask=TABLE == 3),
    "a dictionary": {1: 2.0},
    "a set": {1.0, 2.0},
    "a function": len,
}
"""Never an array of numbers, whatever is asked."""

HOSTILE: dict[str, Any] = {
    **NO_NUMBERS,
    "none": None,
    "nones": [None] * 12,
    "NaN": float("nan"),
    "NaNs": [float("nan")] * 12,
    "infinity": float("inf"),
    "infinities": [float("inf"), -float("inf")] * 6,
    "empty": [],
    "an empty table": np.empty((0, 3)),
    "2-D": np.ones((3, 4)),
    "3-D": np.ones((2, 2, 3)),
    "4-D": np.ones((2, 2, 3, 1)),
    "0-D": np.array(1.0),
    "one": [1.0],
    "negative": -1,
    "zero": 0,
    "half": 0.5,
    "large": 1e300,
    "beyond a float": 10**400,
    "complex number": 1j,
    "truth": True,
    "truths": [True, False] * 6,
    "float16": np.arange(12, dtype=np.float16),
    "uint64": np.full(12, 2**64 - 1, dtype=np.uint64),
    "long double": np.full(12, 1e300, dtype=np.longdouble) * np.longdouble(1e300),
    "decimals": [Decimal("1.5"), Fraction(1, 3)] * 6,
    "empty tuples": [()],
    "an exponent without end": "1e999999999",
}


def parameters(name: str) -> list[str]:
    given = inspect.signature(getattr(hs, name)).parameters.values()
    return [one.name for one in given if one.kind is not one.VAR_KEYWORD]


def plain(answer: object) -> object:
    if isinstance(answer, Estimate):
        return answer.to_json()
    if is_dataclass(answer) and not isinstance(answer, type):
        return asdict(answer)
    return [plain(item) for item in answer] if isinstance(answer, list | tuple) else answer


def call(name: str, parameter: str | None = None, value: object = None) -> object:
    """The answer with this argument; warnings and NaN in it fail."""
    names, arguments = parameters(name), list(CALLS[name])
    options = dict(EVERY) if "n_resamples" in names else {}
    if parameter in names[: len(arguments)]:
        arguments[names.index(parameter)] = value
    elif parameter:
        options[parameter] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = getattr(hs, name)(*arguments, **options)
    if not callable(answer):
        json.dumps(plain(answer), allow_nan=False)
    return answer


FUNCTIONS = [name for name in hs.__all__ if inspect.isfunction(getattr(hs, name))]
ARRAYS = {
    "values", "a", "b", "differences", "member_scores", "control_scores", "table", "minus", "in_scores", "out_scores",
    "canary_losses", "reference_losses", "losses", "p", "floors", "weights",
}  # fmt: skip


def test_every_public_function_is_called_here() -> None:
    assert sorted(CALLS) == sorted(FUNCTIONS)
    for name in FUNCTIONS:
        call(name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_argument_in_turn(name: str) -> None:
    for parameter in parameters(name):
        for kind, value in HOSTILE.items():
            if (parameter, kind) == ("statistic", "a function"):
                continue
            try:
                call(name, parameter, value)
            except UsageError as error:
                assert str(error)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if ARRAYS.intersection(parameters(name))])
def test_what_is_no_number_is_refused_by_the_name_of_the_argument(name: str) -> None:
    for parameter in ARRAYS.intersection(parameters(name)):
        for value in NO_NUMBERS.values():
            with pytest.raises(UsageError, match=rf"^{parameter} "):
                call(name, parameter, value)


ELEMENTS = st.sampled_from(
    [
        1.0,
        0,
        True,
        None,
        float("nan"),
        float("inf"),
        "1",
        b"1",
        1j,
        10**400,
        (),
        object(),
        Decimal("0.1"),
        np.float32(2),
    ]
)
ANYTHING = st.one_of(ELEMENTS, st.lists(ELEMENTS, max_size=12), st.lists(st.lists(ELEMENTS, max_size=7), max_size=7))
TRIED: Callable[[], st.SearchStrategy[tuple[str, str]]] = lambda: st.sampled_from(  # noqa: E731
    [(name, parameter) for name in FUNCTIONS for parameter in parameters(name)]
)


@given(where=TRIED(), value=ANYTHING)
def test_anything_anywhere(where: tuple[str, str], value: object) -> None:
    try:
        call(*where, value)
    except UsageError as error:
        assert str(error)
