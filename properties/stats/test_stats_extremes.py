"""Every function on NaN, infinity, nothing, one element, equal values, 1e-320 and 1e300: a finite value or a reason.

Warnings are errors here, and so is a bare NaN or infinity anywhere in the answer.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lm_audit.stats as hs
from lm_audit.stats import Estimate

NAN, INF = float("nan"), float("inf")
NUMBERS = st.one_of(
    st.sampled_from([NAN, INF, -INF, 0.0, 1e-320, -1e-320, 5e-324, 1e300, -1e300, 1.7e308, -1.7e308, 1.0, 0.1]),
    st.floats(allow_nan=True, allow_infinity=True),
)
FINITE = st.sampled_from([0.0, 1e-320, 5e-324, 1e300, -1e300, 1.7e308, -1.7e308, 1.0, -3.5, 0.1])
SIZED = st.integers(0, 8)
VECTORS = st.one_of(
    st.lists(NUMBERS, max_size=8),
    st.lists(FINITE, max_size=8),
    st.tuples(NUMBERS, st.integers(1, 8)).map(lambda pair: [pair[0]] * pair[1]),
)
COUNTS = st.one_of(st.none(), NUMBERS, st.integers(-3, 60))
Calls = dict[str, Callable[..., Any]]
EVERY: dict[str, Any] = {"n_resamples": 29, "seed": 1}


def strict_json(answer: object) -> object:
    if isinstance(answer, Estimate):
        assert answer.value is not None or answer.note
        return answer.to_json()
    if is_dataclass(answer) and not isinstance(answer, type):
        return asdict(answer)
    return [strict_json(item) for item in answer] if isinstance(answer, list | tuple) else answer


def check(call: Callable[..., object], *arguments: object, **options: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = call(*arguments, **options)
    json.dumps(strict_json(answer), allow_nan=False)


ONE_SAMPLE: Calls = {
    "bootstrap_ci": lambda x: hs.bootstrap_ci(x, **EVERY),
    "bootstrap_ci median percentile": lambda x: hs.bootstrap_ci(x, "median", method="percentile", **EVERY),
    "bootstrap_ci callable": lambda x: hs.bootstrap_ci(x, lambda s: float(1 / s.sum()), **EVERY),
    "mean_interval": lambda x: hs.mean_interval(x, **EVERY),
    "mean_interval clusters": lambda x: hs.mean_interval(x, [i // 2 for i in range(len(x))], **EVERY),
    "bootstrap_clustered": lambda x: hs.bootstrap_clustered(x, [i // 2 for i in range(len(x))], **EVERY),
    "bootstrap_clustered bca": lambda x: hs.bootstrap_clustered(x, range(len(x)), np.median, method="BCa", **EVERY),
    "sign_flip_test": hs.sign_flip_test,
    "equivalence_test": lambda x: hs.equivalence_test(x, 0.5),
    "holm": hs.holm,
    "benjamini_hochberg": hs.benjamini_hochberg,
    "lira_offline": lambda x: hs.lira_offline(0.5, x),
}
TWO_SAMPLE: Calls = {
    "roc_auc": hs.roc_auc,
    "pr_auc": hs.pr_auc,
    "tpr_at_fpr": lambda x, y: hs.tpr_at_fpr(x, y, 0.1),
    "mann_whitney_p": hs.mann_whitney_p,
    "permutation_test": hs.permutation_test,
    "exposure_sampled": hs.exposure_sampled,
    "exposure_extrapolated": hs.exposure_extrapolated,
    "lira_online": lambda x, y: hs.lira_online(0.5, x, y),
    "bootstrap auc": lambda x, y: hs.bootstrap_two_sample(x, y, "roc_auc", method="BCa", **EVERY),
    "bootstrap means": lambda x, y: hs.bootstrap_two_sample(x, y, "mean_difference", method="BCa", **EVERY),
    "bootstrap medians": lambda x, y: hs.bootstrap_two_sample(x, y, "median_difference", **EVERY),
    "bootstrap callable": lambda x, y: hs.bootstrap_two_sample(x, y, lambda a, b: a.mean() / b.mean(), **EVERY),
}
PAIRED: Calls = {
    "paired_effect": hs.paired_effect,
    "bootstrap_paired": lambda a, b: hs.bootstrap_paired(a, b, **EVERY),
    "mcnemar_exact": hs.mcnemar_exact,
    "mcnemar_exact clusters": lambda a, b: hs.mcnemar_exact(a, b, [i // 2 for i in range(len(a))]),
}
TABLES: Calls = {
    "bootstrap_crossed": lambda t: hs.bootstrap_crossed(t, **EVERY),
    "bootstrap_crossed callable": lambda t: hs.bootstrap_crossed(t, np.median, **EVERY),
    "crossed_contrast": lambda t: [hs.crossed_contrast(t, **EVERY)],
    "two_way_p_value": lambda t: hs.two_way_p_value(t, **EVERY),
    "clustered_sign_flip": hs.clustered_sign_flip,
    "crossed_equivalence": lambda t: hs.crossed_equivalence(t, 0.5, **EVERY),
    "max_min_permutation": lambda t: hs.max_min_permutation(np.stack([t, -t]), **EVERY),
    "max_min_two_way": lambda t: hs.max_min_two_way(np.stack([t, -t]), **EVERY),
    "grid_mean_squares": lambda t: hs.grid_mean_squares(np.stack([t, -t])),
}
COUNTED: Calls = {
    "clopper_pearson": lambda a, b, c: hs.clopper_pearson(a, b),
    "wilson": lambda a, b, c: hs.wilson(a, b),
    "share_difference": lambda a, b, c: hs.share_difference(a, b, c, 20),
    "exposure_exact": lambda a, b, c: hs.exposure_exact(a, b),
    "secret_entropy_bits": lambda a, b, c: hs.secret_entropy_bits(a, b),
    "one_run_epsilon": lambda a, b, c: hs.one_run_epsilon(60, a, b, c),
    "one_run_p_value": lambda a, b, c: hs.one_run_p_value(60, a, b, c, 1e-5),
    "epsilon_from_rates": lambda a, b, c: hs.epsilon_from_rates(a, 30, b, 30, c),
    "decide": hs.decide,
    "lira_offline": lambda a, b, c: hs.lira_offline(a, [b, c]),
}


@pytest.mark.parametrize("name", ONE_SAMPLE)
@given(values=VECTORS)
def test_one_sample(name: str, values: list[float]) -> None:
    check(ONE_SAMPLE[name], values)


@pytest.mark.parametrize("name", TWO_SAMPLE)
@given(first=VECTORS, second=VECTORS)
@settings(max_examples=60)
def test_two_samples(name: str, first: list[float], second: list[float]) -> None:
    check(TWO_SAMPLE[name], first, second)


@pytest.mark.parametrize("name", PAIRED)
@given(data=st.data(), size=SIZED)
@settings(max_examples=60)
def test_pairs(name: str, data: st.DataObject, size: int) -> None:
    pool = data.draw(st.sampled_from([NUMBERS, FINITE]))
    sides = [data.draw(st.lists(pool, min_size=size, max_size=size)) for _ in range(2)]
    check(PAIRED[name], *sides)


@pytest.mark.parametrize("name", TABLES)
@given(data=st.data(), rows=st.integers(0, 4), columns=st.integers(0, 4))
@settings(max_examples=60)
def test_tables(name: str, data: st.DataObject, rows: int, columns: int) -> None:
    pool = data.draw(st.sampled_from([NUMBERS, FINITE]))
    cells = data.draw(st.lists(pool, min_size=rows * columns, max_size=rows * columns))
    check(TABLES[name], np.array(cells, dtype=np.float64).reshape(rows, columns))


@pytest.mark.parametrize("name", COUNTED)
@given(a=COUNTS, b=COUNTS, c=COUNTS)
def test_counts_and_numbers(name: str, a: float | None, b: float | None, c: float | None) -> None:
    check(COUNTED[name], a, b, c)


@pytest.mark.parametrize("function", [hs.power_paired_t, hs.power_two_sample_t, hs.power_auc])
@given(effect=NUMBERS, n=st.one_of(NUMBERS, st.integers(0, 100)))
@settings(max_examples=15)
def test_power(function: Callable[..., object], effect: float, n: float) -> None:
    check(function, effect)
    check(function, n=n)
    check(function, effect, n=n)


@given(values=st.lists(FINITE, min_size=40, max_size=60))
@settings(max_examples=10)
def test_a_skew_normal_fit_of_odd_references(values: list[float]) -> None:
    check(hs.exposure_extrapolated, [0.0, 1e300, 1e-320, -1.0], values)
    check(hs.exposure_extrapolated, [0.0, 1.0], [value * 1e-10 for value in values])
