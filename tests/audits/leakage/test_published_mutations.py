"""The published half-option test broken on purpose: what its control is given must be noticed as wrong.

On the untouched toy, since what is compared with plain forward passes needs no memory: ``test_leakage_mutations.py``
shows that what is noticed here fails both controls of the trained one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.leakage import made_up_benchmark, published_memorisation
from lm_audit.audits.leakage.controls import published_hits
from lm_audit.audits.leakage.controls.published_hits import hits_by_chance, published_half
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.toy.tiny_model import tiny_model

QUESTIONS = 8
SCORE = LanguageModel.loglikelihood
Scorer = Callable[..., list[TokenScores]]


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return tiny_model()


def test_a_sound_test_has_no_faults(tiny: LanguageModel) -> None:
    for seed in range(3):
        found = published_half(tiny, made_up_benchmark(QUESTIONS, seed=seed), seed=seed)
        assert found.faults == () and found.score is not None and found.score < 1


# Faults of what the published test asks for, the likeliest next token, and of nothing else.


def one_token_short(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """The likeliest token after a prompt that lacks its last one."""
    found, earlier = (SCORE(self, some, **options) for some in (requests, [(p[:-1], t) for p, t in requests]))
    return [replace(a, top_id=b.top_id) for a, b in zip(found, earlier, strict=True)]


def likeliest(change: Callable[[list[int], np.random.Generator], list[int]]) -> Scorer:
    def scorer(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
        found = list(SCORE(self, requests, **options))
        if not options.get("top"):
            return found
        tops = change([int(a.top_id) for a in found if a.top_id is not None], np.random.default_rng(1))
        return [replace(a, top_id=top) for a, top in zip(found, tops, strict=True)]

    return scorer


TOPS: dict[str, Scorer] = {
    "likeliest token off by one": one_token_short,
    "likeliest tokens swapped between items": likeliest(lambda tops, rng: tops[1:] + tops[:1]),
    "likeliest token constant": likeliest(lambda tops, rng: [101] * len(tops)),
    "likeliest token the first item's": likeliest(lambda tops, rng: tops[:1] * len(tops)),
    "likeliest token noise": likeliest(lambda tops, rng: [int(i) for i in rng.integers(97, 123, len(tops))]),
    "white space wherever asked": likeliest(lambda tops, rng: [32] * len(tops)),
}


@pytest.mark.parametrize("fault", TOPS)
def test_faults_of_the_likeliest_token(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(LanguageModel, "loglikelihood", TOPS[fault])
    assert published_half(tiny, made_up_benchmark(QUESTIONS, seed=0), seed=0).faults


# Faults of the published test between its rows and its numbers.


def reported(change: Callable[[dict[str, float]], dict[str, float]]) -> Callable[..., Evidence]:
    """The published test with its reported values put through ``change``."""

    def published(*arguments: Any, **options: Any) -> Evidence:
        evidence = published_memorisation(*arguments, **options)
        names = ("score", "score_shuffled", "mitigation")
        values = {name: evidence.metrics[f"leakage.published.{name}"].value or 0.0 for name in names}
        for name, value in change(values).items():
            found = evidence.metrics[f"leakage.published.{name}"]
            evidence.metrics[f"leakage.published.{name}"] = replace(found, value=value, low=None, high=None)
        return evidence

    return published


def rows_of(change: Callable[[list[dict[str, Any]]], list[bool]]) -> Callable[..., Evidence]:
    """The published test with the hits of its rows put through ``change``, and every number as they say."""

    def published(*arguments: Any, **options: Any) -> Evidence:
        evidence = published_memorisation(*arguments, **options)
        evidence.rows = [{**row, "hit": hit} for row, hit in zip(evidence.rows, change(evidence.rows), strict=True)]
        sums = {c: sum(r["hit"] for r in evidence.rows if r["condition"] == c) for c in ("original", "shuffled-1")}
        score, mixed = (hits / len(trained_items(evidence)) for hits in sums.values())
        for name, value in (("score", score), ("score_shuffled", mixed), ("mitigation", score - mixed)):
            found = evidence.metrics[f"leakage.published.{name}"]
            evidence.metrics[f"leakage.published.{name}"] = replace(found, value=value, low=None, high=None)
        return evidence

    return published


def trained_items(evidence: Evidence) -> set[str]:
    return {row["question"] for row in evidence.rows}


PUBLISHED: dict[str, Callable[..., Evidence]] = {
    "published score constant": reported(lambda v: dict.fromkeys(v, 2.0)),
    "published order effect reversed": reported(lambda v: {"mitigation": -v["mitigation"] - 0.01}),
    "published conditions exchanged": reported(
        lambda v: {"score": v["score_shuffled"] + 0.01, "score_shuffled": v["score"]}
    ),
    "hits reversed": rows_of(lambda rows: [not row["hit"] for row in rows]),
    "always a hit": rows_of(lambda rows: [True] * len(rows)),
    "hits shuffled": rows_of(
        lambda rows: [bool(hit) for hit in np.random.default_rng(1).permutation([row["hit"] for row in rows])]
    ),
}


@pytest.mark.parametrize("fault", PUBLISHED)
def test_faults_of_rows_and_numbers(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(published_hits, "published_memorisation", PUBLISHED[fault])
    assert published_half(tiny, made_up_benchmark(QUESTIONS, seed=0), seed=0).faults


def test_questions_all_alike_are_refused(tiny: LanguageModel) -> None:
    whole = made_up_benchmark(QUESTIONS, seed=0)
    alike = [replace(item, options=whole.items[0].options) for item in whole.items]
    assert "different second halves" in published_half(tiny, replace(whole, items=tuple(alike)), seed=0).faults[-1]


def test_the_probability_of_hits_by_chance_is_that_of_letters_drawn_by_chance() -> None:
    """As scipy's binomial has it; white space, which the published rule always counts, is no hit at all."""
    from scipy.stats import binom

    rows = [{"predicted": "x", "hit": place < 9} for place in range(96)]
    assert hits_by_chance(rows) == pytest.approx(binom.sf(8, 96, 1 / 26))
    spaces = [{"predicted": " ", "hit": True}] * 40
    assert hits_by_chance([*rows, *spaces]) == pytest.approx(hits_by_chance(rows))
    assert hits_by_chance(spaces) == pytest.approx(1.0) and hits_by_chance([]) == 1.0
