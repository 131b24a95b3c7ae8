"""Everything that needs no model, against reference values."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.audits.leakage import (
    Item,
    dataset_score,
    edit_distance,
    edit_similarity,
    full_text,
    half_option_prefixes,
    is_order_dependent,
    min_k,
    paired_sign_flip,
    published_match,
    rouge_l,
    sharded_test,
    shuffle_options,
    start_points,
)
from lm_audit.audits.leakage.half_option.probing import byte_outcome
from lm_audit.audits.leakage.items.style import poisson_binomial
from lm_audit.stats import roc_auc
from tests.audits.leakage.leakage_golden import golden


@pytest.fixture(scope="module")
def pure() -> Any:
    return golden("pure")


def test_prefixes_and_full_text(pure: Any) -> None:
    for case in pure["prefixes"]:
        expected = [(pair["prefix"], pair["suffix"]) for pair in case["expected"]]
        assert half_option_prefixes(case["question"], case["options"]) == expected
        assert full_text(Item("1", "f", case["question"], tuple(case["options"]))) == case["full"]


def test_cut(pure: Any) -> None:
    for case in pure["cut"]:
        [(prefix, suffix), *_] = half_option_prefixes("Q", [case["option"], "x"])
        assert (prefix, suffix) == (f"Q\nA. {case['head']}", case["tail"])


def test_match_rules(pure: Any) -> None:
    for case in pure["match_rule"]:
        assert published_match(case["decoded"], case["suffix"]) is case["as_coded"], case["note"]
        if case["strict"] is not None:
            token = None if case["decoded"].startswith("<|") else case["decoded"].encode()
            assert (byte_outcome(token, case["suffix"].encode()) == "hit") is case["strict"], case["note"]


def test_aggregation(pure: Any) -> None:
    for case in pure["dataset_score"]:
        files = case["per_question_by_file"]
        assert dataset_score(files, "files") == pytest.approx(case["as_coded_macro_by_file"])
        assert dataset_score(files) == (None if case["micro"] is None else pytest.approx(case["micro"]))
        assert dataset_score({str(k): v for k, v in enumerate(files)}, "items") == dataset_score(files)


def test_answers_follow_their_options(pure: Any) -> None:
    for case in pure["remap"]:
        item = Item("1", "f", "q", tuple("wxyz"[: len(case["order"])]), case["answer"])
        assert shuffle_options(item, case["order"]).answer == case["expected"]
    example = pure["seed_shuffle_example"]
    shuffled = shuffle_options(Item("1", "f", "q", tuple(example["options"]), example["answer"]), example["order"])
    assert list(shuffled.options) == example["expected_options"]
    assert shuffled.answer == example["expected_answer"]


def test_order_dependent_options(pure: Any) -> None:
    for case in pure["order_dependent_options"]:
        assert is_order_dependent(case["option"]) is case["order_dependent"], case["option"]


def test_sign_flips_are_exact(pure: Any) -> None:
    for case in pure["paired_signflip"]:
        greater = paired_sign_flip(case["differences"])
        assert greater.value == pytest.approx(case["p_greater"], abs=1e-12)
        assert greater.method == "paired sign flip, exact"
        two_sided = paired_sign_flip(case["differences"], alternative="two-sided")
        assert two_sided.value == pytest.approx(case["p_two_sided"], abs=1e-12)


def test_binomial_tail(pure: Any) -> None:
    for case in pure["binomial_tail"]:
        tail = poisson_binomial([case["p0"]] * case["n"])[case["k"] :].sum()
        assert tail == pytest.approx(case["p"], rel=1e-9)


def test_sharded_test(pure: Any) -> None:
    for case in pure["sharded_test"]:
        result = sharded_test(case["canonical"], case["shuffled"])
        assert result.t_test.value == pytest.approx(case["t_p_ddof1"], rel=1e-9)
        assert result.rank_p == pytest.approx(case["rank_p_per_shard"])
        assert result.fisher.value == pytest.approx(case["fisher_p"], rel=1e-9)


def test_min_k(pure: Any) -> None:
    for case in pure["min_k"]:
        assert min_k(case["logprobs"], case["k"] / 100, rounding="floor") == pytest.approx(case["expected"])


def test_auc(pure: Any) -> None:
    for case in pure["auc"]:
        assert roc_auc(case["suspect"], case["reference"]).value == pytest.approx(case["auc"])


def test_similarity(pure: Any) -> None:
    for case in pure["completion_similarity"]:
        texts = case["prediction"], case["reference"]
        assert rouge_l(*texts) == pytest.approx(case["rouge_l_chars"])
        assert rouge_l(*texts, unit="words") == pytest.approx(case["rouge_l_words"])
        assert edit_distance(*texts) == case["edit_distance"]
        assert edit_similarity(*texts) == pytest.approx(case["edit_similarity"])


def test_start_points(pure: Any) -> None:
    for case in pure["ngram_starts"]:
        found = start_points(case["n_tokens"], case["n"], case["k"], longest=case["max_positions"])
        assert found == case["expected"]
