"""What controls hold an audit's numbers against: answers on paper, letters drawn by chance, plain forward passes."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom

from lm_audit.audits.leakage.controls import published_hits
from lm_audit.audits.leakage.controls.planted import made_up_benchmark
from lm_audit.audits.leakage.controls.published_hits import PublishedHalf, hits_by_chance, published_half
from lm_audit.audits.leakage.half_option.published import MIXED
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, OTHER_ITEM
from lm_audit.audits.leakage.items.item import LETTERS, Item, shuffle_options
from lm_audit.audits.leakage.likelihood.plain import largest_difference
from lm_audit.audits.leakage.orders.permutations import shuffled_orders
from lm_audit.audits.privacy.controls.bigrams import bigram_model
from lm_audit.audits.privacy.controls.known_scores import (
    COLUMNS,
    _columns,
    expected_scores,
    judge_scores,
    known_scores,
)
from lm_audit.audits.privacy.controls.plain_scores import plain_score, unsound
from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries
from lm_audit.audits.privacy.measure.stage_scores import StageScores
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel
from lm_audit.stats import Estimate
from tests.present import present

MODEL: Any = object()
"""Nothing here asks a model that is not made."""


def guess(predicted: str, hit: bool) -> dict[str, object]:
    return {"predicted": predicted, "hit": hit}


@pytest.mark.parametrize(
    ("rows", "p"),
    [
        ([], 1.0),
        ([guess("q", False)], 1.0),
        ([guess("q", True)], 1 / 26),
        ([guess("q", True), guess("r", True)], 1 / 26**2),
        ([guess("q", True), guess("r", False)], 1 - (25 / 26) ** 2),
        # White space alone is always a hit.
        ([guess(" \n", True), guess("q", True)], 1 / 26),
        ([guess(" ", True)], 1.0),
        ([guess(" q", True)] * 3 + [guess("r", False)] * 21, binom.sf(2, 24, 1 / 26)),
    ],
)
def test_hits_by_chance_are_those_of_letters(rows: list[dict[str, object]], p: float) -> None:
    assert hits_by_chance(rows) == pytest.approx(p)


ITEMS = made_up_benchmark(5, seed=3)


def known(model: object, item: Item) -> list[tuple[tuple[str, ...], str]]:
    """What a plain pass would go on with, in the order in which the options stand: the letter that follows."""
    assert model is MODEL
    return [((text[3], f" {text[3]}"), text[3:]) for text in item.options]


def row(item: Item, option: int, name: str, **changed: object) -> dict[str, object]:
    suffix = item.options[option][3:]
    told: dict[str, object] = {"predicted": suffix[0], "suffix": suffix, "hit": True}
    return told | {
        "item": f"{item.key}:{LETTERS[option]}:{name}", "question": item.key, "condition": name,
    } | changed  # fmt: skip


def evidence(rows: Sequence[dict[str, Any]], **metrics: float | None) -> Evidence:
    """As the published test reports it, with scores that follow from the rows where none are given."""
    made = Evidence("leakage")
    made.extend_rows(rows)
    made.extend_rows(row(item, k, OTHER_ITEM, hit=False, predicted="#") for item in ITEMS.items for k in range(4))
    score, mixed = (sum(bool(one["hit"]) for one in rows if one["condition"] == name) / 5 for name in (ORIGINAL, MIXED))
    values = {"score": score, "score_shuffled": mixed, "mitigation": score - mixed, "mitigation.p": 0.25} | metrics
    for name, value in values.items():
        chance = 0.0 if name.startswith("score") else None
        made.metrics[f"leakage.published.{name}"] = Estimate(value, chance=chance, note="none")
    return made


def rows(**changed: Any) -> list[dict[str, Any]]:
    """Of five questions with four options each, in two orders; ``place`` says where ``changed`` holds."""
    place, count = changed.pop("place", 0), 0
    made = []
    for name in (ORIGINAL, MIXED):
        for item in ITEMS.items:
            for option in range(4):
                made.append(row(item, option, name, **(changed if count == place else {})))
                count += 1
    return made


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The control's half, with what the published test is made to report; each call checks what was asked."""
    monkeypatch.setattr(published_hits, "published_guesses", known)

    def half(made: Evidence) -> PublishedHalf:
        def memorisation(model: object, benchmark: object, *, seed: int) -> Evidence:
            assert (model, benchmark, seed) == (MODEL, ITEMS, 9)
            return made

        monkeypatch.setattr(published_hits, "published_memorisation", memorisation)
        return published_half(MODEL, ITEMS, seed=9)

    return half


def test_what_is_so_has_no_faults(reported: Any) -> None:
    found = reported(evidence(rows(place=19, hit=False, predicted="#")))
    assert found.faults == () and (found.score, found.mixed, found.order_p) == (3.8, 4.0, 0.25)
    assert found.score_p == pytest.approx(binom.sf(18, 20, 1 / 26))
    assert reported(evidence(rows(), **{"mitigation.p": None})).order_p == 1.0


@pytest.mark.parametrize("name", ["score", "score_shuffled", "mitigation"])
def test_a_score_that_does_not_follow_from_the_rows_is_a_fault(name: str, reported: Any) -> None:
    right = {"score": 3.8, "score_shuffled": 4.0, "mitigation": -0.2}[name]
    made = rows(place=19, hit=False, predicted="#")
    told = f"leakage.published.{name} is {{}}, its rows give {right:.4g}"
    for value in (right + 2e-9, right - 2e-9, None):
        assert reported(evidence(made, **{name: value})).faults == (told.format(value),)
    assert reported(evidence(made, **{name: right + 1e-10})).faults == ()


@pytest.mark.parametrize("place", [0, 39])
def test_hits_that_do_not_follow_from_the_next_token_are_a_fault(place: int, reported: Any) -> None:
    for changed in ({"hit": False}, {"predicted": "#"}):
        found = reported(evidence(rows(place=place, **changed)))
        assert found.faults[0] == "1 hits of 40 do not follow from the next token"


@pytest.mark.parametrize(("place", "wrong"), [(0, True), (11, True), (12, False), (20, True), (31, True), (32, False)])
def test_next_tokens_of_the_first_questions_must_be_those_of_plain_passes(
    place: int, wrong: bool, reported: Any
) -> None:
    """Questions 0 to 2 of each order are asked a second time, with four options each."""
    told = "1 of 24 next tokens are not those of plain forward passes"
    assert reported(evidence(rows(place=place, predicted="#", hit=False))).faults == (told,) * wrong
    assert reported(evidence(rows(place=place, suffix="q", predicted="q"))).faults == (told,) * wrong


def test_options_of_the_mixed_order_are_asked_where_they_stand_there(
    reported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Item] = []

    def noted(model: object, item: Item) -> list[tuple[tuple[str, ...], str]]:
        asked.append(item)
        return known(model, item)

    monkeypatch.setattr(published_hits, "published_guesses", noted)
    reported(evidence(rows()))
    expected = []
    for item in ITEMS.items[:3]:
        expected += [item, shuffle_options(item, tuple(shuffled_orders(item, 1, seed=9)[0]))]
    assert [one.options for one in asked] == [one.options for one in expected]


@pytest.mark.parametrize(("alike", "wrong"), [(10, False), (11, True), (20, True)])
def test_second_halves_that_are_all_alike_tell_nothing(alike: int, wrong: bool, reported: Any) -> None:
    made = rows()
    for one in made[12:20] + made[: alike - 7]:
        one.update(suffix="zzz", predicted="z")
    told = [fault for fault in reported(evidence(made)).faults if "second halves" in fault]
    different = 20 - alike if alike > 8 else 12
    assert told == [f"only {len({one['suffix'] for one in made[:20]})} different second halves of 20 options"] * wrong
    assert different >= 0


@pytest.mark.parametrize(
    ("orders", "items", "told"),
    [
        ([(1, 0, 2, 3)] * 5, 5, ["all 5 questions are mixed by one order"]),
        ([(1, 0, 2, 3)] * 4 + [(0, 1, 3, 2)], 5, []),
        ([(1, 0, 2, 3)], 1, []),
    ],
)
def test_questions_that_are_all_mixed_by_one_order_tell_nothing(
    orders: list[tuple[int, ...]], items: int, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(orders)

    def order(item: Item, count: int, *, seed: int = 0) -> list[tuple[int, ...]]:
        assert (count, seed) == (1, 9)
        return [next(left)]

    monkeypatch.setattr(published_hits, "shuffled_orders", order)
    assert published_hits._mixed_alike(ITEMS.items[:items], 9) == told


@pytest.mark.parametrize("share", [None, Estimate(0.1, chance=None), Estimate(0.1, chance=0.0)])
def test_the_second_opinion_knows_ranges_chance_levels_and_numbers_of_rows(
    share: Estimate | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hits after other items, over questions, are chance; a share has a level of 0 where it reports any, and is that
    of the hits above those after other items."""
    asked: list[dict[str, Any]] = []

    def noted(evidence: Evidence, **known: Any) -> list[str]:
        asked.append(known)
        return ["told"]

    monkeypatch.setattr(published_hits, "misreported", noted)
    made = evidence(rows(place=30, hit=False, predicted="#"))
    for one in [one for one in made.rows if one["condition"] == OTHER_ITEM][:7]:
        one["hit"] = True
    if share is not None:
        made.metrics["leakage.published.mitigation_share"] = share
    assert published_hits._misreported(made, ITEMS.items) == ["told"]
    name = "leakage.published.{}".format
    chances = {name("score"): 1.4, name("score_shuffled"): 1.4}
    if share is not None and share.chance == 0.0:
        chances[name("mitigation_share")] = 0.0
    scores = {name(which): (0.0, 4.0) for which in ("score", "score_shuffled")}
    original, mixed = (sum(bool(one["hit"]) for one in made.rows if one["condition"] == c) for c in (ORIGINAL, MIXED))
    mixed_away = original - mixed
    assert asked == [
        {
            "chances": chances,
            "limits": scores | {name("mitigation"): (-4.0, 4.0)},
            "values": {} if share is None else {name("mitigation_share"): pytest.approx(mixed_away / (original - 7))},
            "counts": [({"condition": condition}, 20) for condition in (ORIGINAL, MIXED, OTHER_ITEM)],
        }
    ]


@pytest.mark.parametrize(("after_others", "share", "told"), [(20, 0.1, "not above chance"), (20, None, ""), (7, 0.1, "by another formula"), (19, 0.1, "by another formula")])  # fmt: skip  # noqa: E501
def test_a_share_that_is_not_that_of_the_hits_is_a_fault(after_others: int, share: float | None, told: str) -> None:
    made = evidence(rows())
    for one in [one for one in made.rows if one["condition"] == OTHER_ITEM][:after_others]:
        one["hit"] = True
    made.metrics = {"leakage.published.mitigation_share": Estimate(share, chance=0.0, note="none")}
    faults = [fault for fault in published_hits._misreported(made, ITEMS.items) if "mitigation_share" in fault]
    assert bool(faults) == bool(told) and all(told in fault for fault in faults)


@pytest.fixture(scope="module")
def bigrams() -> LanguageModel:
    return bigram_model(2)


def logprobs(model: LanguageModel, canary: Canary) -> np.ndarray:
    """Of each token of a text after those before it, by the module itself."""
    module: Any = model.module
    ids = model.tokenizer(canary.text, add_special_tokens=False).input_ids
    with torch.no_grad():
        logits = module(torch.tensor([[1, *ids]])).logits[0].double().log_softmax(-1)
    return np.array([float(logits[at, token]) for at, token in enumerate(ids)])


def test_scores_on_paper_are_those_of_the_module(bigrams: LanguageModel) -> None:
    from lm_audit.models.text.byte_tokenizer import BOS

    assert BOS == 1
    canaries = generate_canaries(4, seed=1)
    found = expected_scores(bigrams, canaries)
    assert tuple(found) == COLUMNS
    for place, canary in enumerate(canaries):
        every = logprobs(bigrams, canary)
        secret = every[slice(*canary.secret_span)]
        lowest = [np.sort(some)[: math.ceil(len(some) / 5)].mean() for some in (every, secret)]
        values = [every.mean(), secret.mean(), lowest[0], lowest[1]]
        assert [found[name][place] for name in COLUMNS[:4]] == pytest.approx(values, abs=1e-5)
        assert plain_score(bigrams, canary) == pytest.approx(secret.mean(), abs=1e-5)
    assert present(known_scores(1).control).passed


def test_scores_on_paper_are_of_canaries_of_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[int, int]] = []

    def noted(count: int, seed: int = 0) -> Any:
        drawn.append((count, seed))
        return generate_canaries(count, seed=seed)

    monkeypatch.setattr(sys.modules[known_scores.__module__], "generate_canaries", noted)
    first, second = known_scores(), known_scores(3)
    assert drawn == [(24, 0), (24, 3)]
    assert present(first.control).passed and present(second.control).passed
    assert [row["error"] for row in first.rows] != [row["error"] for row in second.rows]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wrong_of_known_members", "texts scored alone"),
        ("wrong_of_known_ranks", "ranks among all secrets"),
        ("wrong_of_known_replies", "replies known beforehand"),
        ("wrong_of_known_thoughts", "thoughts known beforehand"),
        ("wrong_of_known_seeds", "seeds known beforehand"),
        ("wrong_power", "the power of a design"),
    ],
)
def test_what_of_the_known_answers_cannot_be_counted_is_named(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control fails by it, and counts its 24 canaries besides."""
    module = sys.modules[known_scores.__module__]

    def lost(*_: object) -> list[str]:
        raise ValueError("no items")

    asked: list[dict[str, Any]] = []

    def noted(evidence: Evidence, **known: Any) -> Evidence:
        asked.append(known)
        return evidence

    for each in ("members", "ranks", "replies", "thoughts", "seeds"):
        monkeypatch.setattr(module, f"wrong_of_known_{each}", lambda *_: [])
    monkeypatch.setattr(module, "wrong_power", lambda: [])
    monkeypatch.setattr(module, name, lost)
    monkeypatch.setattr(module, "held_by_its_rows", noted)
    known_scores(1)
    fault = f"{told} cannot be counted again, as where items are lost (ValueError: no items)"
    assert asked == [{"also": [fault], "counts": [({}, 24)]}]


def test_the_model_on_paper_is_another_one_for_another_seed(bigrams: LanguageModel) -> None:
    canaries = generate_canaries(2, seed=0)
    again, other = (expected_scores(bigram_model(seed), canaries)["mean_logprob"] for seed in (2, 3))
    assert (
        np.array_equal(again, expected_scores(bigrams, canaries)["mean_logprob"]) and not np.isclose(again, other).any()
    )


def test_a_score_of_a_text_is_held_against_a_plain_pass_whichever_of_them_is_off(bigrams: LanguageModel) -> None:
    texts = [one.text for one in generate_canaries(3, seed=4)]
    rows: list[dict[str, Any]] = []
    for text in texts:
        every = logprobs(bigrams, Canary("c", "code", text, text, (0, len(text))))
        likeliest = bigrams.module(
            torch.tensor([[1, *bigrams.tokenizer(text[:-5], add_special_tokens=False).input_ids]])
        )
        rows.append(
            {
                "prefix": text[:-5], "suffix": text[-5:], "suffix_bytes": 5, "suffix_logprob": float(every[-5:].sum()),
                "predicted_id": int(likeliest.logits[0, -1].argmax()),
            }
        )  # fmt: skip
    assert largest_difference(bigrams, rows) < 1e-5
    for place in range(3):
        for off, told in ((0.25, 0.25), (-0.5, 0.5), (math.nan, math.inf), (math.inf, math.inf)):
            changed = [dict(one) for one in rows]
            changed[place]["suffix_logprob"] += off
            assert largest_difference(bigrams, changed) == pytest.approx(told, abs=1e-5)
        other = [dict(one) for one in rows]
        other[place]["predicted_id"] = (other[place]["predicted_id"] + 1) % 256
        assert largest_difference(bigrams, other) == math.inf


def test_the_lowest_fifth_is_counted_upwards() -> None:
    found = _columns("x_", np.array([-1.0, -6.0, -2.0, -3.0, -5.0, -4.0]))
    assert found == {"x_mean_logprob": -3.5, "x_min_k20_ceil": -5.5}
    assert _columns("", np.array([-1.0, -6.0, -2.0, -3.0, -5.0]))["min_k20_ceil"] == -6.0


@pytest.mark.parametrize(("off", "passed"), [(0.0, True), (1e-4, True), (-1e-4, True), (1.01e-4, False), (-2e-4, False), (math.nan, False), (math.inf, False), (-math.inf, False)])  # fmt: skip  # noqa: E501
def test_one_score_that_is_off_the_formula_is_enough(off: float, passed: bool) -> None:
    truth = {"a": np.zeros(3), "b": np.zeros(3)}
    table = pd.DataFrame({"a": [5e-5, 0.0, 0.0], "b": [0.0, 0.0, off]})
    made = judge_scores(table, truth)
    control = present(made.control)
    assert (control.role, control.passed) == ("positive", passed)
    error = abs(off) if math.isfinite(off) else 1e308
    assert control.expected == "scores of a model that is known on paper equal the formula to 0.0001"
    assert control.observed == f"the largest error is {max(error, 5e-5):.3g}, in {'b' if off else 'a'}"
    metric = made.metrics["privacy.control_error"]
    assert (metric.value, metric.n, metric.confidence, metric.unit, metric.better) == (
        max(error, 5e-5), 3, None, "nats", "lower",
    )  # fmt: skip
    assert metric.method == "largest error of a canary's score against the formula"
    assert made.rows == [{"item": str(i), "model": "bigrams", "error": e} for i, e in enumerate((5e-5, 0.0, error))]
    source = made.sources["privacy.control_error"]
    assert (source.statistic, source.column, source.unit, source.within) == ("mean", "error", ("model",), "max")
    assert (made.audit, made.headline, made.parameters) == ("privacy", "privacy.control_error", {"canaries": 3})


ROLES = ("member", "control")


def scored(bigrams: LanguageModel) -> tuple[list[Canary], np.ndarray]:
    """Eight canaries, members and twins in turn, and their scores."""
    canaries = [replace(one, role=ROLES[k % 2]) for k, one in enumerate(generate_canaries(8, seed=5))]  # type: ignore[arg-type]
    return canaries, np.array([plain_score(bigrams, one) for one in canaries])


def faults(bigrams: LanguageModel, canaries: Sequence[Canary], values: np.ndarray) -> list[str]:
    table = pd.DataFrame({"role": [one.role for one in canaries], "score": values, "other": 0.0})
    return unsound(StageScores("base", table, table, table, "f"), bigrams, canaries, "score")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("place", "off", "wrong"), [(0, 0.0099, False), (0, 0.0101, True), (2, -0.0101, True), (3, 1.0, False), (1, math.nan, True)])  # fmt: skip  # noqa: E501
def test_scores_that_plain_passes_do_not_give_are_faults(
    role: str, place: int, off: float, wrong: bool, bigrams: LanguageModel
) -> None:
    """The first three of each role are scored a second time."""
    canaries, values = scored(bigrams)
    values[2 * place + ROLES.index(role)] += off
    found = faults(bigrams, canaries, values)
    assert found == [f"scores of {role}s differ from plain forward passes by {abs(off):.2g} nats a token"] * wrong


@pytest.mark.parametrize("role", ROLES)
def test_scores_that_are_all_alike_are_faults(role: str, bigrams: LanguageModel) -> None:
    canaries, values = scored(bigrams)
    own = [k for k, one in enumerate(canaries) if one.role == role]
    told = f"only 1 different scores of 4 {role}s"
    values[own[3]] = values[own[2]]
    values[own[1]] = values[own[0]] + 1e-11
    assert told not in faults(bigrams, canaries, values)
    values[own] = values[own[0]]
    assert faults(bigrams, canaries, values)[-1] == told


@pytest.mark.parametrize(("different", "wrong"), [(5, False), (3, False), (2, True)])
def test_fewer_than_half_of_five_scores_are_too_few(different: int, wrong: bool, bigrams: LanguageModel) -> None:
    canaries = [replace(one, role=ROLES[k % 2]) for k, one in enumerate(generate_canaries(10, seed=5))]  # type: ignore[arg-type]
    values = np.arange(10.0)
    values[0::2] = [min(k, different - 1) for k in range(5)]
    told = [fault for fault in faults(bigrams, canaries, values) if "different" in fault]
    assert told == [f"only {different} different scores of 5 members"] * wrong


def test_half_of_four_scores_are_enough(bigrams: LanguageModel) -> None:
    canaries, values = scored(bigrams)
    values[[0, 2]], values[[4, 6]] = values[0], values[4]
    assert not [fault for fault in faults(bigrams, canaries, values) if "different" in fault]
