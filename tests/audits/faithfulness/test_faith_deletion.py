"""Deletion paths on a small model: sharing, baselines, approximations, references, comparison, figures."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from lm_audit.audits.faithfulness import DeletionTest, Explainer, deletion_curve
from lm_audit.audits.faithfulness.audit import METRICS, Settings, comparison_evidence, method_evidence, score_studies
from lm_audit.audits.faithfulness.compare import agreement, hidden_by_sentences, rank_methods, table_of
from lm_audit.audits.faithfulness.deletion.approximations import approximations
from lm_audit.audits.faithfulness.deletion.curves import DeletionCurve, curve_from_scores
from lm_audit.audits.faithfulness.methods.coordinates import columns_of
from lm_audit.audits.faithfulness.passage.samples import Sample
from lm_audit.audits.faithfulness.study import Scored, Study, prepare, reference_weights
from lm_audit.errors import UsageError
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.sources import unreproduced, unsourced
from tests.audits.faithfulness.small_decoders import small_decoder
from tests.models.pretrained import llama, pretrained
from tests.present import present

PROMPT, ANSWER = "One <script>. Two b. Three?", "<think>no. b</think>\nYes b."


@pytest.fixture(scope="module")
def small() -> LanguageModel:
    return LanguageModel(small_decoder("llama", vocab_size=259), byte_tokenizer(128), name="small")


@pytest.fixture(scope="module")
def study(small: LanguageModel) -> Study:
    return prepare(small, Sample("s", PROMPT, ANSWER, ((14, 20),)))


def _total(model: LanguageModel, prompt_ids: list[int] | tuple[int, ...], generation_ids: tuple[int, ...]) -> float:
    ids = torch.tensor([[*prompt_ids, *generation_ids]])
    logits = model.module(input_ids=ids).logits[0].log_softmax(-1)
    start = len(prompt_ids)
    return sum(float(logits[start + t - 1, token]) for t, token in enumerate(generation_ids))


@pytest.mark.parametrize("baseline", ["eos", "pad", "random"])
def test_scores_equal_one_plain_forward_pass_a_step(small: LanguageModel, baseline: str) -> None:
    explainer = Explainer(small, PROMPT, ANSWER)
    weights = np.random.default_rng(0).random(len(PROMPT))
    test = DeletionTest(small, explainer.passage, steps=6, baseline=baseline, seed=3)
    curve = test.curve(weights)
    from lm_audit.audits.faithfulness.deletion.perturb import baseline_ids

    other = baseline_ids(small.tokenizer, baseline, len(explainer.passage.ids), 3)
    ids, expected = list(explainer.passage.prompt_ids), []
    expected.append(_total(small, ids, explainer.passage.generation_ids))
    for group in curve.groups:
        for feature in group:
            ids[feature] = other[feature]
        expected.append(_total(small, ids, explainer.passage.generation_ids))
    np.testing.assert_allclose(curve.scores, expected, atol=1e-3)


def test_mean_embedding_baseline(small: LanguageModel) -> None:
    explainer = Explainer(small, PROMPT, ANSWER)
    curve = DeletionTest(small, explainer.passage, steps=3, baseline="mean").curve(np.arange(len(PROMPT)))
    embedding = small.module.get_input_embeddings()
    inputs = embedding(torch.tensor([explainer.passage.ids])).clone()
    inputs[0, : len(PROMPT)] = embedding.weight.mean(0)
    logits = small.module(inputs_embeds=inputs).logits[0].log_softmax(-1)
    start = len(PROMPT)
    total = sum(float(logits[start + t - 1, token]) for t, token in enumerate(explainer.passage.generation_ids))
    assert curve.scores[-1] == pytest.approx(total, abs=1e-3)
    assert curve.scores[0] == pytest.approx(
        _total(small, explainer.passage.prompt_ids, explainer.passage.generation_ids), abs=1e-3
    )


def test_random_baseline_is_reproducible_and_not_special(small: LanguageModel) -> None:
    from lm_audit.audits.faithfulness.deletion.perturb import baseline_ids

    first, again, other = (baseline_ids(small.tokenizer, "random", 50, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert not set(first) & set(small.tokenizer.all_special_ids)


def test_states_of_a_call_and_calls_are_scored_once(small: LanguageModel) -> None:
    explainer = Explainer(small, PROMPT, ANSWER)
    test = DeletionTest(small, explainer.passage, steps=5, perturbations=explainer.perturbations())
    rng = np.random.default_rng(1)
    three = {name: rng.random(len(PROMPT)) for name in "abc"}
    first = test.curves(three)
    assert explainer.perturbations().sequences == 2 + 3 * 4
    again = test.curves(three)
    assert explainer.perturbations().sequences == 2 + 3 * 4
    assert all(np.array_equal(again[name].scores, first[name].scores) for name in three)


def test_a_curve_does_not_depend_on_the_curves_before_it(small: LanguageModel) -> None:
    """States that were remembered one by one left other states to a pass, whose last digits then differed."""
    rng = np.random.default_rng(1)
    orders = [rng.random(len(PROMPT)) for _ in range(6)]
    before, alone = ([], [])
    explainer = Explainer(small, PROMPT, ANSWER)
    for order in orders:
        test = DeletionTest(small, explainer.passage, steps=5, perturbations=explainer.perturbations())
        before.append(test.curve(order).scores)
        fresh = Explainer(small, PROMPT, ANSWER)
        alone.append(
            DeletionTest(small, fresh.passage, steps=5, perturbations=fresh.perturbations()).curve(order).scores
        )
    assert all(np.array_equal(one, other) for one, other in zip(before, alone, strict=True))


@pytest.mark.parametrize("unit", ["token", "word", "sentence", "chunk"])
def test_units_are_replaced_token_by_token(small: LanguageModel, study: Study, unit: str) -> None:
    test = study.test(unit, 4, "eos")
    states = test._states(np.arange(len(test.units), dtype=float))
    assert states[0] == frozenset() and states[-1] == frozenset(study.explainer.passage.user)
    assert all(earlier < later for earlier, later in pairwise(states))
    curve = test.curve(study.attribution("ifr"), "rec")
    assert len(curve.scores) == (len(test.units) if unit == "sentence" else min(4, len(test.units))) + 1


def test_approximations_equal_curves_made_by_themselves(small: LanguageModel) -> None:
    weights = np.random.default_rng(2).random(len(PROMPT))
    strict = deletion_curve(small, PROMPT, ANSWER, weights, steps=None)
    assert len(strict.scores) == len(PROMPT) + 1
    chunked = deletion_curve(small, PROMPT, ANSWER, weights, steps=5)
    found = {(one.kind, one.k): one for one in approximations(strict, top=(4, 1000), chunks=(5,))}
    assert found["chunked", 5].rise == pytest.approx(chunked.rise, abs=1e-6)
    assert found["chunked", 5].mas == pytest.approx(chunked.mas, abs=1e-6)
    assert found["chunked", 5].sequences == 6 and found["top", 4].sequences == 6
    assert found["top", 1000].rise_error == pytest.approx(0.0, abs=1e-12)
    assert found["chunked", 5].rise_error == pytest.approx(chunked.rise - strict.rise, abs=1e-6)
    with pytest.raises(UsageError, match="strict"):
        approximations(chunked)


def test_references() -> None:
    weights = reference_weights(6, [1, 4], seed=0)
    assert weights["gold"].tolist() == [0, 1, 0, 0, 1, 0] and set(weights["uniform"]) == {1.0}
    again = reference_weights(6, [1, 4], seed=0)
    assert all(np.array_equal(weights[name], again[name]) for name in weights)
    assert "gold" not in reference_weights(6, [], seed=0)


def test_uniform_weights_beat_an_honest_attribution_in_mas() -> None:
    """Why the references stand beside every MAS: a flat density agrees with a straight response."""
    scores = [0.0, -2.0, -3.0, -3.5, -4.0]
    honest = curve_from_scores([0.9, 0.06, 0.03, 0.01], scores, 4)
    flat = curve_from_scores([0.25, 0.25, 0.25, 0.25], scores, 4)
    assert flat.mas < honest.mas and flat.flat and not honest.flat


def _scored(method: str, sample: str, rise: float, mas: float, unit: str = "token", degenerate: bool = False) -> Scored:
    scores = [0.0, 1.0] if degenerate else [0.0, -1.0]
    from dataclasses import replace

    curve = replace(curve_from_scores([1.0], scores, 1), rise=rise, mas=mas)
    return Scored(sample, method, unit, "row", curve, None, None, None)


def test_ranking_is_paired_and_leaves_degenerate_samples_out() -> None:
    scored = [_scored("good", f"s{i}", 0.1 + 0.1 * i, 0.2 + 0.1 * i) for i in range(8)]
    scored += [_scored("bad", f"s{i}", 0.1 + 0.1 * i, 0.245 + 0.1 * i + 0.01 * (i % 2)) for i in range(8)]
    scored.append(_scored("good", "odd", 0.0, 0.0, degenerate=True))
    table = table_of(scored, "mas")
    assert "odd" not in table["good"]
    first, second = rank_methods(table, "mas", seed=0)
    assert (first.method, second.method) == ("good", "bad") and first.behind is None
    # Samples differ by far more than the methods do; pairing takes that out.
    assert present(second.behind).value == pytest.approx(0.05) and second.separated
    tied = rank_methods(table_of(scored, "rise"), "rise", seed=0)
    assert not tied[1].separated
    assert rank_methods({}, "mas", seed=0) == []


def test_of_methods_that_are_alike_none_is_separated_from_the_best() -> None:
    """The best of six was chosen by looking: intervals of each difference alone separated one in 22 of 100 runs."""
    rng, separated = np.random.default_rng(3), 0
    for seed in range(120):
        own = rng.beta(3, 5, 12)
        table = {f"m{k}": dict(zip("abcdefghijkl", own + 0.05 * rng.normal(size=12), strict=True)) for k in range(6)}
        separated += any(one.separated for one in rank_methods(table, "mas", seed=seed, n_resamples=499))
    assert separated <= 12


def test_what_sentences_hide() -> None:
    token = [_scored("a", "s", 0, 0.30), _scored("b", "s", 0, 0.50), _scored("c", "s", 0, 0.31)]
    sentence = [_scored(method, "s", 0, 0.4, unit="sentence") for method in "abc"]
    rows = hidden_by_sentences(token, sentence)
    assert [(row["first"], row["second"]) for row in rows] == [("a", "b"), ("b", "c")]


def test_agreement() -> None:
    rows = agreement({"a": {"s": [1, 2, 3]}, "b": {"s": [3, 2, 1]}, "c": {"s": [1, 1, 1]}})
    assert [row["spearman"] for row in rows] == [pytest.approx(-1.0), None, None]


@pytest.mark.parametrize("method", ["flashtrace", "ft_attnlrp", "integrated_gradients", "ablation"])
def test_method_evidence_is_plain_json_with_a_reason_for_every_gap(study: Study, method: str) -> None:
    evidence = method_evidence([study], method, Settings(steps=3))
    assert set(evidence.metrics) == {
        f"faithfulness.{name}" for name in (*METRICS, "degenerate_share", "better_than_random", "better_than_even")
    }
    for estimate in evidence.metrics.values():
        assert estimate.value is not None or estimate.note
    json.dumps([evidence.rows, [dict(figure.data) for figure in evidence.figures]], allow_nan=False)
    kinds = [figure.kind for figure in evidence.figures]
    assert "tokens" in kinds and "vega-lite" in kinds
    assert unreproduced(evidence) == [] and unsourced(evidence) == []
    row = evidence.rows[0]
    assert {"rise_uniform", "rise_random", "rise_gold", "mas_uniform", "mas_random", "mas_gold"} <= set(row)
    assert any("faithfulness.mas can reach no verdict here" in note for note in evidence.notes)  # one sample


def test_heatmaps_show_the_text_as_it_is_with_a_frame_a_hop(study: Study) -> None:
    evidence = method_evidence([study], "flashtrace", Settings(steps=3, hops=2))
    figure = next(figure for figure in evidence.figures if figure.kind == "tokens")
    labels = [frame["label"] for frame in figure.data["frames"]]
    assert labels == ["explained span", "rolled back to the prompt", "hop 0", "hop 1", "hop 2"]
    tokens = figure.data["frames"][0]["tokens"]
    assert "".join(token["text"] for token in tokens[: len(PROMPT)]) == PROMPT
    assert {token["group"] for token in tokens} == {"prompt", "evidence", "thinking", "answer", "generation"}
    hops = next(figure for figure in evidence.figures if figure.name == "hops")
    assert [row["hop"] for row in hops.data["rows"]] == [0, 1, 2]


def test_comparison_evidence(study: Study) -> None:
    methods = ["ifr", "attention", "input_x_gradient"]
    evidence = comparison_evidence([study], methods, Settings(steps=3))
    assert {figure.name for figure in evidence.figures} == {
        "ranking", "agreement", "hidden_by_sentences", "approximations", "methods", "side_by_side",
    }  # fmt: skip
    assert [row["method"] for row in evidence.rows] == methods
    assert unreproduced(evidence) == [] and unsourced(evidence) == []
    json.dumps([dict(figure.data) for figure in evidence.figures], allow_nan=False)
    assert len(score_studies([study], methods, Settings(steps=3))) == 3


def test_one_forward_pass_serves_all_methods_that_need_one(small: LanguageModel) -> None:
    explainer = Explainer(small, PROMPT, ANSWER)
    passes = []
    handle = pretrained(small.module).register_forward_hook(lambda *_: passes.append(1))
    try:
        for method in ("ifr", "ifr_span", "ft_ifr", "flashtrace", "attnlrp", "ft_attnlrp", "input_x_gradient",
                       "attention", "attention_reference", "rollout"):  # fmt: skip
            explainer.attribute(method)
    finally:
        handle.remove()
    assert len(passes) == 1


@pytest.mark.parametrize("points", [2, 20])
def test_integrated_gradients_are_gradients_on_the_line_from_the_end_of_text(small: LanguageModel, points: int) -> None:
    """The rule of the reference, by autograd: equally spaced points of weight 1/points, both ends halved."""
    explainer, token = Explainer(small, PROMPT, ANSWER), 3
    ids, module = torch.tensor(explainer.trace.ids), pretrained(small.module)
    row = explainer.positions((token, token))[0]
    embed = module.get_input_embeddings()
    line = (embed(ids) - embed(torch.tensor([present(small.tokenizer.eos_token_id)]))).detach()
    total, ends = torch.zeros(len(ids)), []
    for number in range(points):
        share = number / (points - 1)
        here = (embed(ids).detach() + (share - 1) * line).requires_grad_()
        value = module(inputs_embeds=here[None]).logits[0, row - 1].log_softmax(-1)[ids[row]]
        (slope,) = torch.autograd.grad(value, here)
        total += (slope * line).sum(-1) * (0.5 if share in (0, 1) else 1.0) / points
        ends.append(float(value.detach()))
    found = explainer.attribute("integrated_gradients", sink=(token, token), points=points)
    expected = columns_of(explainer, total[None])[0]
    np.testing.assert_allclose(present(found.vector), expected, atol=1e-4 * float(np.abs(expected).max()))
    change = ends[-1] - ends[0]
    assert found.details["change"][0] == pytest.approx(change, abs=1e-4)
    assert found.details["completeness_gap"][0] == pytest.approx(abs(float(total.sum()) / change - 1), abs=1e-3)


def test_integrated_gradients_of_a_span_take_one_pass_a_point(small: LanguageModel) -> None:
    explainer = Explainer(small, PROMPT, ANSWER)
    assert explainer.trace
    passes = []
    handle = llama(small.module).model.register_forward_hook(lambda *_: passes.append(1))
    try:
        explainer.attribute("integrated_gradients", sink=(2, 6), points=7)
    finally:
        handle.remove()
    assert len(passes) == 7


def test_a_score_between_random_and_gold_needs_a_gold_order_that_is_better() -> None:
    from lm_audit.audits.faithfulness.study import _between

    def references(gold: tuple[float, float]) -> dict[str, DeletionCurve]:
        return {
            "random-0": _scored("r", "s", 0.5, 0.6).curve,
            "random-1": _scored("r", "s", 0.7, 0.8).curve,
            "gold": _scored("g", "s", *gold).curve,
        }

    assert _between(0.45, references((0.3, 0.5)), "rise") == pytest.approx(0.5)
    assert _between(0.45, references((0.595, 0.9)), "rise") is None
    assert _between(0.45, references((0.3, 0.9)), "mas") is None
    assert _between(0.45, {"random-0": _scored("r", "s", 0.5, 0.6).curve}, "rise") is None
