"""Break the instrument on purpose: every fault must be noticed, by each control that guards against it.

Faults of the scorer are planted into the one call that every score comes from, faults of the methods into what every
view of an attribution is read from, faults of the metrics into the functions that compute them, and faults of the
bookkeeping into the samples. The controls then run as they are, on as many samples as decide them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from lm_audit.audits.faithfulness import audit, conclusions, study
from lm_audit.audits.faithfulness.attribution import Attribution
from lm_audit.audits.faithfulness.controls import deletion_control, plain_attributions
from lm_audit.audits.faithfulness.controls import known_sources as controls
from lm_audit.audits.faithfulness.controls.copier import copier, copy_samples
from lm_audit.audits.faithfulness.controls.deletion_control import Orders
from lm_audit.audits.faithfulness.controls.other_formulas import wrong_report
from lm_audit.audits.faithfulness.deletion import curves as deletion
from lm_audit.audits.faithfulness.deletion import metrics
from lm_audit.audits.faithfulness.deletion.metrics import FaithfulnessScores, faithfulness_scores, rank_correlation
from lm_audit.audits.faithfulness.deletion.perturb import Perturbations
from lm_audit.audits.faithfulness.methods import attention_maps, backward, hop_methods, hops, matrices, relevance
from lm_audit.audits.faithfulness.methods.ifr import heads, routes
from lm_audit.audits.faithfulness.passage.samples import Sample
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel
from lm_audit.models.scoring.results import TokenScores
from tests.audits.faults_and_guards import in_turns, remembered
from tests.audits.reporting_faults import CHANCES, COUNTS, WIDTHS
from tests.present import present

SCORE = remembered(LanguageModel.loglikelihood)
WEIGHTS = Attribution.prompt_weights
FAITHFULNESS_SCORES = faithfulness_scores
CORRELATION = rank_correlation
SAMPLES = {"planted": 11, "randomised": 11, "random": 15}
"""As many as decide each control."""

CONTROLS: dict[str, Callable[..., Evidence]] = {
    "planted": controls.planted_span_evidence,
    "randomised": partial(controls.randomised_weights_evidence, cascade=False),
    "random": deletion_control.random_attribution_evidence,
}
RNG = np.random.default_rng(1)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return copier(seed=3)


@pytest.fixture(autouse=True)
def fewer_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """One method of each kind is enough here; all of them run in the controls' own tests. What the audit reports of a
    method has faults of its own (``REPORT``), which its second route is asked about alone.
    """
    monkeypatch.setattr(deletion_control, "wrong_report", lambda *words, **options: [])
    monkeypatch.setattr(controls, "wrong_attributions", lambda device: [])
    monkeypatch.setattr(controls, "METHODS", ("ifr", "leave_one_out"))
    monkeypatch.setattr(controls, "REPORTED", ())
    monkeypatch.setattr(LanguageModel, "loglikelihood", SCORE)


Floats = NDArray[np.float64]
Fault = tuple[object, str, object]
"""Where it is planted, under which name, and what stands there."""


def scorer(change: Callable[[list[TokenScores]], list[TokenScores]]) -> Fault:
    """The scorer with its answers put through ``change(answers)``."""
    return LanguageModel, "loglikelihood", lambda self, requests, **o: change(list(SCORE(self, requests, **o)))


def asked(change: Callable[[Any, Any], tuple[Any, Any]]) -> Fault:
    """The scorer with its requests put through ``change(prefix, target)``."""
    return LanguageModel, "loglikelihood", lambda self, requests, **o: SCORE(self, [change(*r) for r in requests], **o)


def each(change: Callable[[Floats, NDArray[np.int64]], tuple[Floats, NDArray[np.int64]]]) -> Fault:
    """The scorer with every answer's log-probabilities and ranks put through ``change``."""

    def changed(found: list[TokenScores]) -> list[TokenScores]:
        given = [(a, *change(a.logprobs, a.ranks)) for a in found]
        return [replace(a, logprobs=logprobs, ranks=ranks) for a, logprobs, ranks in given]

    return scorer(changed)


def attribution(change: Callable[[Floats, Attribution], Floats]) -> Fault:
    """What every view of an attribution gives, put through ``change(weights, attribution)``."""
    return Attribution, "prompt_weights", lambda self, *a, **o: change(WEIGHTS(self, *a, **o), self)


def metric(change: Callable[[float], float]) -> Fault:
    """RISE, MAS and RISE+AP put through ``change``."""

    def broken(scores: Floats, weights: Floats, steps: int) -> FaithfulnessScores:
        found = FAITHFULNESS_SCORES(scores, weights, steps)
        return found._replace(rise=change(found.rise), mas=change(found.mas), rise_ap=change(found.rise_ap))

    return deletion, "faithfulness_scores", broken


def correlation(change: Callable[[float], float]) -> Fault:
    """The rank correlation put through ``change``, where there is one."""

    def changed(first: ArrayLike, second: ArrayLike) -> float | None:
        found = CORRELATION(first, second)
        return None if found is None else change(found)

    return controls, "rank_correlation", changed


def swapped(answers: list[TokenScores]) -> list[TokenScores]:
    """Answers handed to other requests, whose token counts fit."""
    found = list(answers)
    for length in {len(a.logprobs) for a in answers}:
        places = [i for i, a in enumerate(answers) if len(a.logprobs) == length]
        for place, source in zip(places, places[1:] + places[:1], strict=True):
            found[place] = answers[source]
    return found


def one_token_late(self: deletion.DeletionTest, weights: Floats) -> list[frozenset[int]]:
    states = DELETED(self, weights)
    last = max(self.passage.user)
    return [frozenset(min(position + 1, last) for position in state) for state in states]


DELETED = deletion.DeletionTest._states


def overwrites_nothing(self: Perturbations, changes: Sequence[object]) -> NDArray[np.float64]:
    return TOTALS(self, [frozenset() for _ in changes])


TOTALS = Perturbations.totals


def cheating(cls: type[Orders], features: int, gold: Sequence[int], rng: np.random.Generator) -> Orders:
    weights = dict(MAKE_ORDERS(features, gold, rng).weights)
    return Orders(weights | {name: weights["first"] for name in weights if name.startswith("random")})


MAKE_ORDERS = Orders.of


def one_draw_for_all(cls: type[Orders], features: int, gold: Sequence[int], rng: np.random.Generator) -> Orders:
    return MAKE_ORDERS(features, gold, np.random.default_rng(0))


INSTRUMENT: dict[str, tuple[Fault, set[str]]] = {
    "scorer: off by one token": (asked(lambda prefix, target: (prefix[:-1], target)), {"planted", "random"}),
    "scorer: prompt ignored": (asked(lambda prefix, target: (prefix[:1], target)), {"planted", "randomised", "random"}),
    "scorer: noise": (each(lambda lp, _: (-RNG.exponential(size=len(lp)), RNG.integers(0, 9, len(lp)))), {"random"}),
    "scorer: constant": (each(lambda lp, ranks: (lp * 0 - 1.0, ranks * 0)), {"planted", "random"}),
    "scorer: sign reversed": (each(lambda lp, ranks: (-lp, 258 - ranks)), {"planted", "random"}),
    "scorer: answers swapped": (scorer(swapped), {"planted", "random"}),
    "scorer: last token forgotten": (each(lambda lp, ranks: (np.append(lp[:-1], 0.0), ranks)), {"random"}),
    "scorer: a mean for a sum": (each(lambda lp, ranks: (lp / len(lp), ranks)), {"random"}),
    "scorer: another temperature": (each(lambda lp, ranks: (0.9 * lp, ranks)), {"random"}),
    "scorer: cut off": (each(lambda lp, ranks: (np.maximum(lp, -4.0), ranks)), {"random"}),
    "scorer: half of a nat off": (each(lambda lp, ranks: (lp - 0.5, ranks)), {"random"}),
    "method: off by one token": (attribution(lambda w, a: np.roll(w, 1)), {"planted"}),
    "method: constant": (attribution(lambda w, a: w * 0 + 1.0), {"planted", "randomised"}),
    "method: noise": (attribution(lambda w, a: RNG.random(len(w))), {"planted", "randomised"}),
    "method: sign reversed": (attribution(lambda w, a: -w), {"planted"}),
    "method: nearest tokens": (attribution(lambda w, a: np.arange(float(len(w)))), {"planted", "randomised"}),
    "method: letters alone": (
        attribution(lambda w, a: np.array([a.passage.ids[p] for p in a.passage.user]) * 1.0),
        {"planted", "randomised"},
    ),
    "metric: constant": (metric(lambda value: 0.5), {"random"}),
    "metric: zero": (metric(lambda value: 0.0), {"random"}),
    "metric: noise": (metric(lambda value: float(RNG.random())), {"random"}),
    "metric: reversed": (metric(lambda value: 1.0 - value), {"random"}),
    "metric: sign reversed": (metric(lambda value: -value), {"random"}),
    "deletion: off by one token": ((deletion.DeletionTest, "_states", one_token_late), {"random"}),
    "deletion: overwrites nothing": ((Perturbations, "totals", overwrites_nothing), {"random"}),
    "random attributions that know the answer": ((Orders, "of", classmethod(cheating)), {"random"}),
    "one draw for all samples": ((Orders, "of", classmethod(one_draw_for_all)), {"random"}),
    "weights are not randomised": ((controls, "randomised", lambda model, layers, seed: model), {"randomised"}),
    "correlation: constant": (correlation(lambda value: 0.0), {"randomised"}),
    "correlation: one": (correlation(lambda value: 1.0), {"randomised"}),
    "correlation: noise": (correlation(lambda value: float(RNG.uniform(-1, 1))), {"randomised"}),
    "correlation: sign reversed": (correlation(lambda value: -value), {"randomised"}),
}  # fmt: skip


ALIKE = {
    "scorer: another temperature",  # goes the way of "a mean for a sum", as do those below of what stands in brackets
    "scorer: half of a nat off",  # (cut off)
    "method: nearest tokens",  # (method: letters alone)
    "metric: zero",  # (metric: constant)
    "metric: sign reversed",  # (metric: reversed)
    "correlation: constant",  # (correlation: noise)
    "correlation: one",  # (correlation: sign reversed)
}
"""Faults planted in the place of another one, which is always tried: they are with ``-m slow``."""


def put(module: object, name: str, fault: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """``fault(honest, ...)`` in place of a function, where its module uses it."""
    return lambda patch: patch.setattr(module, name, partial(fault, getattr(module, name)))


def of_scores(change: Callable[[FaithfulnessScores], FaithfulnessScores]) -> Callable[[pytest.MonkeyPatch], None]:
    return put(deletion, "faithfulness_scores", lambda f, *words: change(f(*words)))


REPORT: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "recovery of the lowest weights": put(study, "recovery", lambda f, weights, gold: f(1 - np.asarray(weights), gold)),
    "recovery of a fifth": put(study, "recovery", lambda f, weights, gold: f(weights, gold, 0.2)),
    "recovery one token late": put(study, "recovery", lambda f, weights, gold: f(np.roll(weights, 1), gold)),
    "recovery constant": put(study, "recovery", lambda f, *words: 1.0),
    "normalised the other way round": put(study, "normalised_score", lambda f, value, a, b: f(value, b, a)),
    "normalised by a chance of 1": put(study, "normalised_score", lambda f, value, a, b: f(value, 1.0, b)),
    "degenerate turned round": of_scores(lambda found: found._replace(degenerate=not found.degenerate)),
    "gain over even weights told of random ones": lambda patch: patch.setitem(
        conclusions.REFERENCES, conclusions.METRIC, "mas_uniform"
    ),
    "gain of the wrong sign": put(conclusions, "_gains", lambda f, *words: [-gain for gain in f(*words)]),
    "one sample left out of the means": put(audit, "table_of", lambda f, scored, *w, **o: f(scored[:-1], *w, **o)),
    "area as a mean of steps": put(metrics, "area", lambda f, curve: float(np.mean(curve))),
    "penalty forgotten": put(metrics, "corrected_response", lambda f, response, penalty: f(response, 0 * penalty)),
    "density of what was deleted": put(metrics, "density_curve", lambda f, *words: 1 - f(*words)),
    "response as it is": put(metrics, "monotone_response", lambda f, s: (s - s[-1]) / abs(s[0] - s[-1])),
    **WIDTHS,
    **CHANCES,
    **COUNTS,
}
"""What the audit's report of a method can get wrong; *random-attribution* shows one."""


@pytest.fixture(scope="module")
def studies(model: LanguageModel) -> list[study.Study]:
    return [study.prepare(model, sample) for sample in copy_samples(9, 2)]


@pytest.mark.parametrize("fault", [None, *REPORT])
def test_a_wrong_report_of_a_method_is_noticed(
    fault: str | None, studies: list[study.Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in studies:
        one.references.clear()
    if fault is not None:
        REPORT[fault](monkeypatch)
    assert bool(wrong_report(studies, steps=6, seed=2)) == (fault is not None)


def test_a_report_that_is_wrong_fails_the_control(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_control, "wrong_report", lambda *words, **options: ["not so"])
    assert not present(CONTROLS["random"](model, copy_samples(SAMPLES["random"], 2), seed=2).control).passed


def rules(**factors: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(relevance, "ATTN_LRP", replace(backward.ATTN_LRP, **factors))


def mask(change: Callable[[torch.Tensor], torch.Tensor], window: int = 0) -> Callable[[pytest.MonkeyPatch], None]:
    return put(backward, "causal_mask", lambda f, n, w, device: change(f(n, None if w is None else w + window, device)))


def dropped(product: relevance._Product, cotangents: torch.Tensor) -> torch.Tensor:
    return (cotangents * product.factor[: cotangents.shape[1]])[..., :-1].sum(-1)


PARTS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "a mask without its diagonal": ("input_x_gradient", mask(lambda seen: seen.fill_diagonal_(False))),
    "one dimension dropped": ("attnlrp of a span", lambda p: p.setattr(relevance._Product, "__call__", dropped)),
    "a flow without the stream's share": ("ifr", put(routes, "proximity", lambda f, *words: 0 * f(*words))),
    "one head for all": (
        "attention",
        put(attention_maps, "_head_mean", lambda f, layer, at: layer.probabilities(at)[0]),
    ),
    "a hop that carries all": ("ft_attnlrp", put(hops, "_share", lambda f, *words: 1.0)),
    "a sentence that is not overwritten": (
        "ablation",
        put(matrices, "sentence_plan", lambda f, passage: f(passage)[1:]),
    ),
}
"""What an attribution can get wrong of a part of the model, and whose attribution shows it."""

MORE_PARTS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "a window one too wide": ("attnlrp", mask(lambda seen: seen, window=1)),
    "positions turned on": (
        "input_x_gradient",
        put(backward, "rotated_back", lambda f, *words: heads.rotated(*words)),
    ),
    "values with all relevance": ("attnlrp", rules(value=1.0)),
    "queries and keys with half": ("attnlrp", rules(query_key=0.5)),
    "gates with all relevance": ("ft_attnlrp", rules(product=1.0)),
    "columns one position late": (
        "rollout",
        put(matrices, "columns_of", lambda f, one, full: f(one, full.roll(1, -1))),
    ),
    "stop tokens kept": ("flashtrace", lambda patch: patch.setattr(hop_methods, "STOP_TOKENS", frozenset())),
    "log p for CLP": (
        "ablation_clp",
        put(matrices, "concentrated_log_probability", lambda f, scores, vocabulary: scores.logprobs),
    ),
}


@pytest.fixture(scope="module")
def plain() -> Mapping[str, NDArray[np.float64]]:
    """What plain passes give, whatever the fault."""
    return plain_attributions.Plain(plain_attributions.explainer_of("cpu")).attributions()


@pytest.mark.parametrize(
    ("asked", "apply"),
    [
        pytest.param(*cell, id=name, marks=[pytest.mark.slow] if name in MORE_PARTS else [])
        for name, cell in (PARTS | MORE_PARTS).items()
    ],
)
def test_a_wrong_attribution_is_noticed(
    asked: str,
    apply: Callable[[pytest.MonkeyPatch], None],
    plain: Mapping[str, NDArray[np.float64]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plain_attributions.Plain, "attributions", lambda self: plain)
    assert not plain_attributions.wrong_attributions(asked=[asked])
    apply(monkeypatch)
    assert plain_attributions.wrong_attributions(asked=[asked])


def rotated(samples: list[Sample], **fields: str) -> list[Sample]:
    """Each sample with the named fields of the next one."""
    return [
        replace(one, **dict[str, Any]((name, getattr(other, name)) for name in fields.values()))
        for one, other in zip(samples, samples[1:] + samples[:1], strict=True)
    ]


Mixed = Callable[[list[Sample]], list[Sample]]
BOOKKEEPING: dict[str, tuple[Mixed, set[str]]] = {
    "prompts swapped between samples": (lambda samples: rotated(samples, a="prompt"), {"planted", "random"}),
    "labels shuffled between samples": (lambda samples: rotated(samples, a="evidence"), {"planted", "random"}),
    "all samples identical": (lambda samples: [samples[0]] * len(samples), set(CONTROLS)),
    "too few samples": (lambda samples: samples[:9], set(CONTROLS)),
}


REPORTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], set[str]]] = {
    **{fault: (apply, set(CONTROLS)) for fault, apply in (WIDTHS | COUNTS).items()},
    "chance levels 0.1 up": (CHANCES["chance levels 0.1 up"], {"planted", "randomised"}),
    "attributions unlike plain ones": (
        lambda patch: patch.setattr(controls, "wrong_attributions", lambda device: ["ifr"]),
        {"planted"},
    ),
    "curves known beforehand misreported": (
        lambda patch: patch.setattr(deletion_control, "wrong_of_known_curves", lambda: ["told"]),
        {"random"},
    ),
}


def cells(table: Mapping[str, tuple[Any, set[str]]]) -> list[pytest.ParameterSet]:
    """Each fault with each of its guards: one of them, in turns, always; the others with ``-m slow``."""
    return [
        pytest.param(*cell, control, id=f"{name}-{control}", marks=[pytest.mark.slow] if name in ALIKE else marks)
        for number, (name, cell) in enumerate(table.items())
        for control, marks in in_turns(number, cell[1])
    ]


@pytest.mark.parametrize("control", sorted(CONTROLS))
def test_nothing_broken_passes(control: str, model: LanguageModel) -> None:
    evidence = CONTROLS[control](model, copy_samples(SAMPLES[control], 2), seed=2)
    assert present(evidence.control).passed, present(evidence.control).observed


@pytest.mark.parametrize(("fault", "guards", "control"), cells(INSTRUMENT))
def test_a_broken_instrument_is_noticed(
    fault: Fault, guards: set[str], control: str, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, broken = fault
    monkeypatch.setattr(where, name, broken)
    assert not present(CONTROLS[control](model, copy_samples(SAMPLES[control], 2), seed=2).control).passed


@pytest.mark.parametrize(("apply", "guards", "control"), cells(REPORTED))
def test_a_report_that_is_not_of_the_rows_is_noticed(
    apply: Callable[[pytest.MonkeyPatch], None],
    guards: set[str],
    control: str,
    model: LanguageModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apply(monkeypatch)
    assert not present(CONTROLS[control](model, copy_samples(SAMPLES[control], 2), seed=2).control).passed


@pytest.mark.parametrize(("fault", "guards", "control"), cells(BOOKKEEPING))
def test_broken_bookkeeping_is_noticed(fault: Mixed, guards: set[str], control: str, model: LanguageModel) -> None:
    assert not present(CONTROLS[control](model, fault(list(copy_samples(SAMPLES[control], 2))), seed=2).control).passed
