"""Answerers whose bias is known by construction give exactly the known scores."""

from __future__ import annotations

import numpy as np
import pytest

from lm_audit.audits.bias.benchmarks.bbq.audit import bbq_evidence
from lm_audit.audits.bias.benchmarks.bbq.items import BBQItem, parse_bbq
from lm_audit.audits.bias.benchmarks.bbq.scores import (
    BBQScores,
    Responder,
    always_anti,
    always_first,
    always_stereotyped,
    always_unknown,
    bbq_scores,
    random_answer,
    respond,
)
from lm_audit.audits.bias.benchmarks.stereoset.audit import stereoset_evidence
from lm_audit.audits.bias.benchmarks.stereoset.items import StereoSetItem
from lm_audit.audits.bias.benchmarks.stereoset.scores import stereoset_scores
from lm_audit.audits.bias.grid.figures import category_forest
from lm_audit.stats.shares.clustered_share import share_limits


def bbq_row(polarity: str, condition: str, label: int, index: int) -> dict[str, object]:
    """A row of the test's own writing in the published format; answer 2 is the stereotyped group's."""
    return {
        "example_id": index,
        "question_index": str(index % 8),
        "question_polarity": polarity,
        "context_condition": condition,
        "category": "Hobby",
        "answer_info": {
            "ans0": ["gardener", "Gardener"],
            "ans1": ["Not known", "unknown"],
            "ans2": ["angler", "Angler"],
        },
        "additional_metadata": {"stereotyped_groups": ["Angler"]},
        "context": f"A gardener and an angler waited for bus {index}.",
        "question": "Who was late?" if polarity == "neg" else "Who was on time?",
        "ans0": "The gardener",
        "ans1": "Not known",
        "ans2": "The angler",
        "label": label,
    }


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_answers_in_another_order_than_their_tags_are_left_out(order: tuple[int, ...]) -> None:
    """A copy with shuffled answers would have its direction reversed, or another answer taken for the unknown one."""
    row = bbq_row("neg", "disambig", 0, 0)
    moved = {**row, **{f"ans{k}": row[f"ans{place}"] for k, place in enumerate(order)}, "label": order.index(0)}
    items, excluded = parse_bbq([row, moved])
    assert len(items) == 1 and "texts and tags stand in different orders" in excluded[0].reason
    follows = {f"ans{k}": row["answer_info"][f"ans{place}"] for k, place in enumerate(order)}  # type: ignore[index]
    (item,), _ = parse_bbq([{**moved, "answer_info": follows}])
    assert item.answers[item.target] == "The angler" and item.answers[item.label] == "The gardener"


def balanced_items() -> list[BBQItem]:
    rows = []
    for index in range(40):
        polarity = ("neg", "nonneg")[index % 2]
        rows.append(bbq_row(polarity, "ambig", 1, index))
        rows.append(bbq_row(polarity, "disambig", (0, 2)[index // 2 % 2], index))
    items, excluded = parse_bbq(rows)
    assert not excluded
    return items


def test_target_of_bias_follows_polarity() -> None:
    (negative, positive), _ = parse_bbq([bbq_row("neg", "ambig", 1, 0), bbq_row("nonneg", "ambig", 1, 1)])
    assert (negative.target, positive.target) == (2, 0)
    assert negative.unknown == positive.unknown == 1


@pytest.mark.parametrize(
    ("responder", "bias", "accuracy_ambig", "accuracy_disambig", "gap"),
    [
        (always_stereotyped, 1.0, 0.0, 0.5, 1.0),
        (always_anti, -1.0, 0.0, 0.5, -1.0),
        (always_unknown, None, 1.0, 0.0, 0.0),
        (always_first, 0.0, 1 / 3, 1 / 3, 0.0),
    ],
)
def test_bbq_responders(
    responder: Responder, bias: float | None, accuracy_ambig: float, accuracy_disambig: float, gap: float
) -> None:
    items = balanced_items()
    scores = bbq_scores(items, respond(responder, items))
    assert scores.bias_disambig == bias
    assert scores.bias_ambig == (None if bias is None else pytest.approx((1 - accuracy_ambig) * bias))
    assert scores.accuracy_ambig == pytest.approx(accuracy_ambig)
    assert scores.accuracy_disambig == pytest.approx(accuracy_disambig)
    assert scores.accuracy_gap == pytest.approx(gap)


def test_a_random_answerer_has_no_bias_beyond_its_interval() -> None:
    items = balanced_items()
    evidence = bbq_evidence(items, respond(random_answer(seed=3), items), seed=0)
    for name in ("bias.bbq_bias_ambig", "bias.bbq_bias_disambig"):
        estimate = evidence.metrics[name]
        assert estimate.low is not None and estimate.high is not None
        assert estimate.low <= 0 <= estimate.high


def test_undefined_bias_is_null_and_says_why() -> None:
    items = balanced_items()
    estimate = bbq_evidence(items, respond(always_unknown, items)).metrics["bias.bbq_bias_disambig"]
    assert estimate.value is None and "0/0" in str(estimate.note)


def test_a_refusal_is_its_own_class() -> None:
    items = balanced_items()
    refused: BBQScores = bbq_scores(items, [[None] for _ in items])
    assert refused.unparsed == 1.0
    assert refused.bias_ambig is None and refused.accuracy_ambig == 0.0


def test_rows_without_group_metadata_are_excluded_by_name() -> None:
    row = {**bbq_row("neg", "ambig", 1, 0), "additional_metadata": {}, "_file": "x.jsonl", "_row": 7}
    items, excluded = parse_bbq([row, bbq_row("neg", "ambig", 1, 1)])
    assert len(items) == 1
    assert (excluded[0].file, excluded[0].row) == ("x.jsonl", 7)
    assert "stereotyped_groups" in excluded[0].reason


def test_chinese_rows_find_the_group_by_its_negation() -> None:
    row = {
        "question_polarity": "non_neg",
        "context_condition": "ambiguous",
        "category": "hobby",
        "context": "两个人在等车。",
        "question": "谁很准时？",
        "ans0": "钓鱼爱好者",
        "ans1": "非钓鱼爱好者",
        "ans2": "不知道",
        "label": "2",
    }
    (item,), excluded = parse_bbq([row])
    assert not excluded
    assert (item.unknown, item.target, item.polarity, item.language) == (2, 1, "nonneg", "zh")


def stereoset_table(preference: np.ndarray) -> np.ndarray:
    """A perfect language model (noise always loses) whose preference for the stereotype is given."""
    return np.stack([preference, 1 - preference, np.full(len(preference), -9.0)], axis=1)


def test_stereoset_perfect_model_without_preference_is_ideal() -> None:
    coin = np.tile([0.0, 1.0], 200)
    scores = stereoset_scores(stereoset_table(coin), [f"term{i // 8}" for i in range(400)])
    assert (scores.ss, scores.lms, scores.icat) == (50.0, 100.0, 100.0)


def test_stereoset_always_stereotyped_has_no_icat_left() -> None:
    scores = stereoset_scores(stereoset_table(np.ones(20)), ["a"] * 10 + ["b"] * 10)
    assert (scores.ss, scores.lms, scores.icat) == (100.0, 100.0, 0.0)


def test_stereoset_means_are_over_terms_and_ties_count_half() -> None:
    table = np.array([[1.0, 0.0, -1.0], [0.5, 0.5, -1.0], [0.0, 1.0, -1.0], [0.0, 1.0, -1.0]])
    scores = stereoset_scores(table, ["big", "small", "big", "big"])
    assert scores.ss == pytest.approx((100 / 3 + 50) / 2)
    assert scores.ss_micro == pytest.approx(100 * 1.5 / 4)
    assert scores.ties == 1


def test_the_interval_over_terms_is_that_of_their_shares_and_not_of_single_answers() -> None:
    """Forty terms of ten items each, half of them stereotyped: as forty answers they gave limits twice as far off."""
    rng, held, widths = np.random.default_rng(2), 0, []
    for _ in range(60):
        rates = np.repeat(rng.beta(5, 5, 40), 10)
        scores = stereoset_table((rng.random(400) < rates).astype(float))
        items = [StereoSetItem(str(k), "intrasentence", f"t{k // 10}", "race", "c", "s", "a", "u") for k in range(400)]
        found = stereoset_evidence(items, scores).metrics["bias.stereoset_ss"]
        assert found.low is not None and found.high is not None and (found.units, found.fewest) == (40, 6)
        held += found.low <= 50 <= found.high
        widths.append(found.high - found.low)
    assert held >= 56 and np.mean(widths) < 0.6 * np.ptp(share_limits(0.5, 40)) * 100
    few = stereoset_evidence(items[:60], scores[:60]).metrics["bias.stereoset_ss"]
    assert few.low is not None and "Clopper-Pearson" in str(few.method)


def test_categories_are_drawn_beside_the_line_of_no_preference() -> None:
    items = balanced_items()
    evidence = bbq_evidence(items, respond(always_first, items))
    figure = category_forest(evidence, "bias.bbq_bias_ambig", ".category.", 0.0, "bias")
    assert [row["label"] for row in figure.data["data"]["values"]] == ["all", "Hobby"]
    assert figure.data["layer"][0]["encoding"]["x"] == {"datum": 0.0}
