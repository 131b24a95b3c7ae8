"""What statistics say where they have no value, no interval or no way to reach what is asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lm_audit.stats as hs
from lm_audit.errors import UsageError
from lm_audit.stats import Estimate
from lm_audit.stats.means.order_statistics import median_interval


def test_groups_that_cannot_tell_an_area_say_so() -> None:
    assert "nothing to detect" in (hs.power_auc(auc=0.5, power=0.8).note or "")
    assert "more than" in (hs.power_auc(auc=0.5 + 1e-7, power=0.8).note or "")
    assert "cannot show even an AUC of 1" in (hs.power_auc(n=2, level=1e-9).note or "")


def test_a_median_of_bad_few_or_equal_values_has_no_interval() -> None:
    bad, few, equal = (median_interval(values) for values in ([1.0, np.nan], [1.0, 2.0, 4.0], [3.0] * 20))
    assert bad.value is None and bad.n == 2 and bad.note
    assert (few.value, few.low) == (2.0, None) and "3 values give no interval" in (few.note or "")
    assert (equal.value, equal.low) == (3.0, None) and "do not differ" in (equal.note or "")


@pytest.mark.parametrize("table", [[], [1.0, 2.0]])
def test_a_table_without_cells_or_columns_is_told(table: list[float]) -> None:
    if table:
        with pytest.raises(UsageError, match="rows and columns are needed"):
            hs.two_way_mean(np.array(table))
    else:
        found = hs.two_way_mean(np.zeros((0, 3)))
        assert found.value is None and "the table is empty" in (found.note or "")


@pytest.mark.parametrize("fields", [{"n": -5}, {"units": -1}, {"confidence": 95}, {"confidence": -0.1}])
def test_an_estimate_refuses_counts_below_0_and_a_confidence_in_per_cent(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        Estimate(0.5, 0.4, 0.6, **fields)  # type: ignore[arg-type]  # what a mistake would give


def test_numbers_of_other_libraries_become_plain() -> None:
    made = Estimate(np.float32(0.5), np.float64(0.25), np.float16(0.75), n=np.int64(8))  # type: ignore[arg-type]
    assert json.loads(json.dumps(made.to_json())) == Estimate(0.5, 0.25, 0.75, n=8).to_json()
    assert repr(made) == "Estimate(0.5, low=0.25, high=0.75, n=8)"
