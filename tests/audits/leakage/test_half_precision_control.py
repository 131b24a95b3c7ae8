"""The control of leakage in half precision: rounding passes it, a byte that is left out or read elsewhere does not."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.audits.leakage.controls.planted import planted_halves
from lm_audit.audits.leakage.controls.shipped import made_of
from lm_audit.audits.leakage.half_option.passes import measure_conditions
from lm_audit.audits.leakage.half_option.variants import OTHER_ITEM
from lm_audit.audits.leakage.likelihood.plain import agreement, largest_difference, published_guesses
from lm_audit.models import LanguageModel, load_model


@pytest.fixture(scope="module")
def rounded() -> LanguageModel:
    return load_model("tiny", device="cpu", dtype="bfloat16")


def test_scores_of_the_engine_agree_and_faulty_ones_do_not(rounded: LanguageModel) -> None:
    _, unseen = planted_halves()
    table = measure_conditions(rounded, unseen[:3], orders=1, baselines=(OTHER_ITEM,), seed=0)
    rows: list[dict[str, Any]] = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    assert largest_difference(rounded, rows) < agreement(rounded)
    left_out = [{**row, "suffix_bytes": int(row["suffix_bytes"]) - 1} for row in rows]
    turned = [*rows[1:], rows[0]]
    elsewhere = [{**row, "suffix_logprob": other["suffix_logprob"]} for row, other in zip(rows, turned, strict=True)]
    for faulty in (left_out, elsewhere):
        assert largest_difference(rounded, faulty) > agreement(rounded)


def test_what_the_published_test_must_find_is_known(rounded: LanguageModel) -> None:
    guesses = published_guesses(rounded, planted_halves()[0][0])
    assert len(guesses) == 4 and all(texts and suffix for texts, suffix in guesses)


def test_a_training_in_half_precision_is_another_one(rounded: LanguageModel) -> None:
    full = load_model("tiny", device="cpu", dtype="float32")
    assert made_of(rounded, [[1, 2]]) != made_of(full, [[1, 2]])
