"""Counterfactual swaps, refusals and the stratified sample."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lm_audit.audits.bias.benchmarks.sampling import stratified_sample
from lm_audit.audits.bias.generated.counterfactual import counterfactual_swap, load_swap_items
from lm_audit.audits.bias.generated.refusal import load_refusal_set, refusal_rates
from lm_audit.audits.bias.generated.swap import swap_gender
from lm_audit.errors import DataError
from lm_audit.models import LanguageModel, load_model

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "bias"


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return load_model("tiny", device="cpu")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He saw her book.", "She saw his book."),
        ("She saw him.", "He saw her."),
        ("The book is hers.", "The book is his."),
        ("The book is his.", "The book is hers."),
        ("HER idea, Mr Lee", "HIS idea, Mrs Lee"),
        ("The queen blamed herself", "The king blamed himself"),
    ],
)
def test_swaps_follow_the_role(text: str, expected: str) -> None:
    swapped = swap_gender(text)
    assert swapped.text == expected
    assert swap_gender(swapped.text).text == text


def test_a_text_without_gender_is_refused() -> None:
    with pytest.raises(DataError, match="no gendered word"):
        swap_gender("The table is heavy.")


def test_swapping_shifts_and_controls_give_a_floor(tiny: LanguageModel) -> None:
    items = load_swap_items(FIXTURES / "counterfactual_en.toml")
    evidence = counterfactual_swap(tiny, items)
    assert evidence.parameters["n"] == 16 and evidence.parameters["n_control"] == 12
    shift, floor, excess = (
        evidence.metrics[f"bias.counterfactual_{name}"].value for name in ("shift", "noise_floor", "excess_shift")
    )
    assert shift is not None and floor is not None and excess == pytest.approx(shift - floor)
    by_hand = tiny.loglikelihood([(items[0].before, items[0].suffix), (items[0].swapped, items[0].suffix)])
    assert evidence.rows[0]["shift"] == pytest.approx(by_hand[1].total - by_hand[0].total, abs=1e-3)


def test_the_swap_needs_a_noise_floor(tiny: LanguageModel) -> None:
    items = [item for item in load_swap_items(FIXTURES / "counterfactual_en.toml") if not item.control]
    with pytest.raises(DataError, match="noise floor"):
        counterfactual_swap(tiny, items)


def test_swap_files_name_the_broken_entry(tmp_path: Path) -> None:
    path = tmp_path / "swaps.toml"
    path.write_text('texts = ["He left, and | it rained.", "No bar here, he said."]')
    with pytest.raises(DataError) as caught:
        load_swap_items(path)
    assert caught.value.row == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('texts = ["He left | in the rain | at noon."]', "must hold one ' | '"),
        ('texts = ["\u200b | it rained."]', "text on both sides"),
        ('texts = ["He left | \u200b"]', "text on both sides"),
        ('[[control]]\ntext = "It rained | again."\nswap = ["rained", "rained"]', "changes nothing"),
        ('[[control]]\ntext = "It rained | again."\nswap = ["rained", "rained\u200b"]', "changes nothing"),
    ],
)
def test_a_swap_that_is_none_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "swaps.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(says)):
        load_swap_items(path)


@pytest.mark.parametrize(
    ("reply", "refusal"),
    [
        ("I'm sorry, but I can't help.", True),
        ('  "I’m sorry, no."', True),
        ("As an AI, I have no view.", True),
        ("Sure! I'm sorry to hear that.", False),
        ("", False),
    ],
)
def test_refusals_are_read_from_the_opening(reply: str, refusal: bool) -> None:
    assert load_refusal_set(FIXTURES / "refusal_en.toml").is_refusal(reply) is refusal


def test_refusal_rates_are_paired_and_bounded(tiny: LanguageModel) -> None:
    refusals = load_refusal_set(FIXTURES / "refusal_en.toml")
    evidence = refusal_rates(tiny, refusals, refusals.axes[2], max_new_tokens=4)
    assert len(evidence.rows) == 2 * len(refusals.requests)
    difference = evidence.metrics["bias.refusal_max_difference"]
    assert difference.low is not None and difference.high is not None
    # Eight requests that nobody refuses do not prove that rates are equal.
    assert difference.high - difference.low > 10


def test_a_sample_keeps_categories_in_proportion() -> None:
    rows = [{"kind": kind, "n": n} for kind, count in (("a", 70), ("b", 25), ("c", 5)) for n in range(count)]
    sample = stratified_sample(rows, 20, lambda row: row["kind"], seed=1)
    counts = {kind: sum(row["kind"] == kind for row in sample) for kind in "abc"}
    assert counts == {"a": 14, "b": 5, "c": 1}
    assert sample == stratified_sample(rows, 20, lambda row: row["kind"], seed=1)
    assert sample != stratified_sample(rows, 20, lambda row: row["kind"], seed=2)
    assert stratified_sample(rows, None, lambda row: row["kind"], seed=1) == rows


@pytest.mark.parametrize(
    ("text", "lacks"),
    [("", "texts"), ("texts = ['He saw it. | So it was.']", r"\[\[control\]\]")],
)
def test_swaps_of_one_kind_alone_are_refused_before_the_model(tmp_path: Path, text: str, lacks: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(DataError, match=f"own.toml: holds no {lacks}: "):
        load_swap_items(tmp_path / "own.toml")
