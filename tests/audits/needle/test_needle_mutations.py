"""Break the needle audit on purpose: the control that guards against a fault must fail under it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lm_audit.audits.needle.answers.evaluation as evaluation
import lm_audit.audits.needle.answers.scores as scores
import lm_audit.audits.needle.controls.answers_known as known
import lm_audit.audits.needle.controls.stubs as controls
import lm_audit.audits.needle.grid.adaptive as adaptive
import lm_audit.audits.needle.grid.cells as cells
import lm_audit.audits.needle.grid.cliff as cliff
import lm_audit.audits.needle.haystack.fitting as fitting
import lm_audit.audits.needle.samples.building as building
import lm_audit.models.generation.prefix_reader as prefix_reader
import lm_audit.models.generation.shared_prefix as shared_prefix
from lm_audit.audits.needle import Haystack, build_sample
from lm_audit.audits.needle.controls.answers_known import wrong_cliffs, wrong_search
from lm_audit.audits.needle.controls.planted import planted_model
from lm_audit.audits.needle.haystack.sources import embedded_essay
from lm_audit.audits.needle.haystack.windows import place
from lm_audit.audits.needle.samples.task import NeedleTask
from lm_audit.audits.second_opinion import found_wrong
from lm_audit.errors import HarnessError
from lm_audit.evidence import Evidence
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.stats import Estimate
from tests.audits.faults_and_guards import in_turns
from tests.audits.reporting_faults import COUNTS, WIDTHS

Fault = Callable[[pytest.MonkeyPatch], None]


def no_needle(seed: int) -> Evidence:
    """The negative control, asked of the planted model: eight prompts without their needle."""
    haystack = Haystack(embedded_essay().text[:9000], byte_tokenizer(2048))
    given: dict[str, Any] = {"length": 900, "depth": 50.0, "needle": NeedleTask(), "seed": seed, "template": "base"}
    samples = [build_sample(haystack, index=index, tokens_to_generate=16, planted=False, **given) for index in range(8)]
    return controls.chance_evidence(planted_model(), samples)


CONTROLS: Mapping[str, Callable[[int], Evidence]] = {
    "reader": controls.reader_control,
    "middle": controls.middle_control,
    "planted": controls.planted_control,
    "planted-middle": controls.planted_middle_control,
    "no-needle": no_needle,
}


def _scorers(make: Callable[[Any], Any]) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        for name, scorer in list(cells.SCORERS.items()):
            patch.setitem(cells.SCORERS, name, make(scorer))

    return apply


def _noise(_: Any) -> Any:
    rng = np.random.default_rng(1)
    return lambda text, references: float(rng.random() < 0.5)


def _labels_shuffled(patch: pytest.MonkeyPatch) -> None:
    def answered(model: Any, samples: Any) -> Any:
        others = [*samples[1:], samples[0]]
        swapped = [replace(one, outputs=other.outputs) for one, other in zip(samples, others, strict=True)]
        return evaluation.answered(model, swapped)

    patch.setattr(controls, "answered", answered)


def _complete(change: Callable[..., Any]) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        sound = shared_prefix.complete
        patch.setattr(shared_prefix, "complete", lambda *given, **named: change(sound, *given, **named))

    return apply


def _others_prompt(sound: Any, model: Any, prompts: Any, targets: Any, **named: Any) -> Any:
    return sound(model, [*prompts[1:], prompts[0]], targets, **named)


def _one_prompt(sound: Any, model: Any, prompts: Any, targets: Any, **named: Any) -> Any:
    return sound(model, [prompts[0]] * len(prompts), targets, **named)


def _other_order(sound: Any, *given: Any, **named: Any) -> Any:
    return sound(*given, **named)[::-1]


def _prompt_one_short(sound: Any, model: Any, prompts: Any, targets: Any, **named: Any) -> Any:
    return sound(model, [prompt[:-1] for prompt in prompts], targets, **named)


def _targets_one_late(sound: Any, model: Any, prompts: Any, targets: Any, **named: Any) -> Any:
    return sound(model, prompts, [target[1:] for target in targets], **named)


def _score(change: Callable[[Any], Any]) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        sound = prefix_reader.target_scores
        for reads in (prefix_reader, shared_prefix):
            patch.setattr(reads, "target_scores", lambda *given: change(sound(*given)))

    return apply


def _items_identical(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(building, "derived_rng", lambda *_: __import__("random").Random(1))


def _depth_ignored(at: int) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        sound = place
        patch.setattr(
            fitting,
            "place",
            lambda haystack, window, depths, boundary: sound(haystack, window, [float(at)] * len(depths), boundary),
        )

    return apply


def _length_ignored(patch: pytest.MonkeyPatch) -> None:
    sound: Callable[..., fitting.Fitter] = fitting.Fitter
    patch.setattr(building, "Fitter", lambda *given: sound(*given[:4], given[4] - 200, given[5]))


def _scored(change: Callable[[list[Any]], list[Any]]) -> Fault:
    """What the answers were found to hold, put through ``change``."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(controls, "answered", lambda model, samples: change(evaluation.answered(model, samples)))

    return apply


def _shifted(patch: pytest.MonkeyPatch) -> None:
    """Each sample gets the scores of the one before."""

    def answered(model: Any, samples: Any) -> Any:
        found = evaluation.answered(model, samples)
        moved = [found[-1], *found[:-1]]
        return [replace(one, scores=other.scores) for one, other in zip(found, moved, strict=True)]

    patch.setattr(controls, "answered", answered)


def _threshold_turned(patch: pytest.MonkeyPatch) -> None:
    """Lengths count while their accuracy is below the threshold."""

    def leading(lengths: list[int], accuracy: Any, threshold: float, bound: str) -> int | None:
        below = [length for length in lengths if (getattr(accuracy[length], bound) or 0.0) < threshold]
        return below[-1] if below else None

    patch.setattr(cliff, "_leading", leading)


def _put(module: Any, name: str, fault: Callable[..., Any]) -> Fault:
    """``fault(honest, ...)`` in place of a function, where its module uses it."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = getattr(module, name)
        patch.setattr(module, name, lambda *words, **options: fault(honest, *words, **options))

    return apply


def _row(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Fault:
    """What a row says of an answer, put through ``change`` before the numbers are made of it."""

    def fault(honest: Callable[..., Any], one: Any) -> dict[str, Any]:
        row: dict[str, Any] = honest(one)
        return row | change(row)

    return _put(evaluation, "_row", fault)


def _logprob(change: Callable[[float], float]) -> Fault:
    return _row(lambda row: {"value_logprob": None if (nats := row["value_logprob"]) is None else change(nats)})


def _scorer(name: str, score: Callable[..., float]) -> Fault:
    return lambda patch: patch.setitem(cells.SCORERS, name, score)


def _depths_turned_round(honest: Callable[..., Any], haystack: Any, window: Any, depths: Any, boundary: Any) -> Any:
    return honest(haystack, window, [100 - depth for depth in depths], boundary)


def _lengths_exchanged(honest: Callable[..., Any], scored: Any) -> Any:
    found = honest(scored)
    return dict(zip(found, list(found.values())[::-1], strict=True))


def _shared(honest: Callable[..., Any], scores: Any, clusters: Any = None, **options: Any) -> Any:
    values = list(scores)
    return honest(values, [str(place // 4) for place in range(len(values))], **options)


ANSWERS: Mapping[str, Fault] = {
    "any reference will do": _scorer("all", scores.score_any),
    "all references must be there": _scorer("any", lambda *words: float(scores.score_all(*words) == 1)),
    "one of several references counts as one alone": _scorer(
        "all", lambda text, references: scores.score_any(text, references) / len(references)
    ),
    "depths measured from the other end": _put(
        known,
        "wrong_places",
        lambda honest, some: honest([replace(one, actual_position=100 - one.actual_position) for one in some]),
    ),
    "words without borders": _scorer("boundary", scores.score_all),
    "borders where none are asked for": _scorer("all", scores.score_boundary),
    "precision reversed": _put(cells, "precision", lambda honest, *w: None if (p := honest(*w)) is None else 1 - p),
    "precision of no number is 0": _put(cells, "precision", lambda honest, *words: honest(*words) or 0.0),
    "accuracy from another column": _put(
        evaluation, "_shares", lambda honest, evidence, scored, scorer: honest(evidence, scored, "boundary")
    ),
    "greedy reversed": _row(lambda row: {"value_greedy": not row["value_greedy"]}),
    "log-probability to the base 2": _logprob(lambda nats: nats / np.log(2)),
    "probability in the place of its logarithm": _logprob(lambda nats: float(np.exp(nats))),
    "cut where it ended": _row(lambda row: {"cut": not row["cut"]}),
    "empty where it is not": _row(lambda row: {"empty": not row["empty"]}),
    "answers always come": _row(lambda row: {"no_answer": False}),
    "lengths exchanged": _put(evaluation, "by_length", _lengths_exchanged),
    "depths turned round": _put(fitting, "place", _depths_turned_round),
    "samples taken for clusters": _put(evaluation, "share", _shared),
    "case of the wrong length": _put(evaluation, "by_length", lambda honest, scored: honest(scored[5:])),
}
"""Faults between answers and report, which answers that are known beforehand show to *reads-the-needle*."""


def _of_cliff(change: Callable[[Estimate], Estimate]) -> Fault:
    return _put(evaluation, "cliff", lambda honest, *words: change(honest(*words)))


CLIFF: Mapping[str, Fault] = {
    "far end at the level of one length": _put(evaluation, "possible_level", lambda honest, lengths: 0.95),
    "far end left out": _of_cliff(lambda found: replace(found, high=found.low)),
    "far end always the longest": _of_cliff(lambda found: replace(found, high=None if found.high is None else 4096.0)),
    "no limits": _of_cliff(lambda found: replace(found, low=None, high=None)),
    "twice as many answers": _of_cliff(lambda found: replace(found, n=2 * (found.n or 0))),
    "a chance level": _of_cliff(lambda found: replace(found, chance=0.1)),
    "threshold 0.1 lower": _put(evaluation, "cliff", lambda honest, a, t, p: honest(a, t - 0.1, p)),
    "threshold 0.1 higher": _put(evaluation, "cliff", lambda honest, a, t, p: honest(a, t + 0.1, p)),
    "threshold turned round": _threshold_turned,
    "by values and not by limits": _put(
        evaluation,
        "cliff",
        lambda honest, a, t, p: honest({k: replace(one, low=one.value) for k, one in a.items()}, t, p),
    ),
    "the longer length forgotten": _put(
        evaluation, "cliff", lambda honest, a, t, p: honest({min(a): a[min(a)]}, t, {min(p): p[min(p)]})
    ),
    "lengths exchanged": _put(
        evaluation, "cliff", lambda honest, a, t, p: honest(dict(zip(a, list(a.values())[::-1], strict=True)), t, p)
    ),
}
"""What the cliff can get wrong; *reads-the-needle* shows cliffs of answers that are known beforehand."""


@pytest.mark.parametrize("fault", [None, *CLIFF])
def test_a_wrong_cliff_is_noticed(fault: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = controls.stub_samples(0)
    if fault is not None:
        CLIFF[fault](monkeypatch)

    assert bool(wrong_cliffs(samples)) == (fault is not None)


def _spent(change: Callable[[adaptive.AdaptiveRun], Estimate]) -> Fault:
    return lambda patch: patch.setattr(adaptive.AdaptiveRun, "spent", property(change))


def _next_as(change: Callable[[Any, adaptive.AdaptiveRun, Any, int, float], int | None]) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = adaptive._next
        patch.setattr(adaptive, "_next", lambda *words: change(honest, *words))

    return apply


def _every_cell(honest: Any, run: adaptive.AdaptiveRun, lengths: Any, most: int, precision: float) -> int | None:
    return next((length for length in lengths if len(run.scores[length]) < most), None)


def _first_round_again(patch: pytest.MonkeyPatch) -> None:
    honest = adaptive._take
    patch.setattr(
        adaptive,
        "_take",
        lambda run, places, scores: honest(run, places[:1], scores[:1]) if run.scores else honest(run, places, scores),
    )


SEARCH: Mapping[str, Fault] = {
    "share of what is left": _spent(lambda run: Estimate(1 - run.samples / run.full, n=run.samples)),
    "one length not counted": _spent(lambda run: Estimate((run.samples - 3) / run.full, n=run.samples - 3)),
    "of half of the grid": _spent(lambda run: Estimate(2 * run.samples / run.full, n=run.samples)),
    "goes on until every cell is full": _next_as(_every_cell),
    "stops after the first round": _next_as(lambda *words: None),
    "samples asked again": _first_round_again,
    "another threshold": lambda patch: patch.setattr(
        adaptive, "cliff", lambda accuracy, threshold: cliff.cliff(accuracy, 0.999)
    ),
}


@pytest.mark.parametrize("fault", [None, *SEARCH])
def test_a_fault_of_the_adaptive_search_is_noticed(fault: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault is not None:
        SEARCH[fault](monkeypatch)
    assert bool(found_wrong("search", wrong_search)) == (fault is not None)


SAMPLES: dict[tuple[Any, ...], list[Any]] = {}


@pytest.fixture(autouse=True)
def samples_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stubs' samples, made once by the same parts: a fault that takes the place of one has its own."""
    honest = controls.stub_samples

    def once(seed: int, **options: Any) -> list[Any]:
        parts = ((building, "derived_rng"), (building, "Fitter"), (fitting, "place"))
        key = (seed, repr(sorted(options.items())), *(getattr(module, name) for module, name in parts))
        if key not in SAMPLES:
            SAMPLES[key] = honest(seed, **options)
        return list(SAMPLES[key])

    monkeypatch.setattr(controls, "stub_samples", once)


ANSWERED: dict[tuple[Any, ...], list[Any]] = {}


@pytest.fixture(autouse=True)
def answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers that are known beforehand hold, and what the planted model completes, found out once by the same
    parts; faults stand above both, or take the place of a part.
    """
    complete = shared_prefix.complete

    def answered(answerer: Any, samples: Any) -> list[Any]:
        key = (repr(answerer), repr(samples), vars(cells)["precision"], *cells.SCORERS.values())
        if key not in ANSWERED:
            ANSWERED[key] = evaluation.answered(answerer, samples)
        return list(ANSWERED[key])

    def completed(model: Any, prompts: Any, targets: Any, **named: Any) -> list[Any]:
        # What is enough of an answer hangs on its target.
        plain = {name: value for name, value in named.items() if name != "enough"}
        scored = [vars(module)["target_scores"] for module in (shared_prefix, prefix_reader)]
        key = (model.fingerprint, repr(prompts), repr(targets), repr(plain), *scored)
        if key not in ANSWERED:
            ANSWERED[key] = complete(model, prompts, targets, **named)
        return list(ANSWERED[key])

    monkeypatch.setattr(known, "answered", answered)
    monkeypatch.setattr(shared_prefix, "complete", completed)


ALL = set(CONTROLS)
FAULTS: Mapping[str, tuple[Fault, set[str]]] = {
    "metric constant 0": (_scorers(lambda _: lambda *_: 0.0), {"reader", "middle", "planted", "planted-middle"}),
    "metric constant 1": (_scorers(lambda _: lambda *_: 1.0), {"middle", "planted-middle", "no-needle"}),
    "metric reversed": (
        _scorers(lambda s: lambda *a: 1.0 - s(*a)),
        {"reader", "middle", "planted", "planted-middle", "no-needle"},
    ),
    "metric noise": (_scorers(_noise), {"reader", "middle", "planted", "planted-middle", "no-needle"}),
    "labels shuffled": (_labels_shuffled, {"reader", "middle", "planted", "planted-middle"}),
    "prompts swapped": (_complete(_others_prompt), {"planted", "planted-middle"}),
    "prompt ignored": (_complete(_one_prompt), {"planted", "planted-middle"}),
    "answers in another order": (_complete(_other_order), {"planted"}),
    "prompt one token short": (_complete(_prompt_one_short), {"planted"}),
    "scorer off by one token": (_complete(_targets_one_late), {"planted"}),
    "log-probability reversed": (_score(lambda s: replace(s, logprobs=-s.logprobs)), {"planted"}),
    "log-probability constant": (_score(lambda s: replace(s, logprobs=0 * s.logprobs)), {"planted"}),
    "ranks ignored": (_score(lambda s: replace(s, greedy=False)), {"planted"}),
    "all items identical": (_items_identical, {"reader"}),
    "always at the start": (_depth_ignored(0), {"middle", "planted-middle"}),
    "always in the middle": (_depth_ignored(50), {"middle", "planted-middle"}),
    "length not kept": (_length_ignored, {"reader"}),
    "half of the samples lost": (_scored(lambda scored: scored[::2]), ALL),
    "one side of the middle lost": (
        _scored(lambda scored: [one for one in scored if one.depth >= 50]),
        ALL - {"no-needle"},
    ),
    "samples counted twice": (_scored(lambda scored: [*scored, *scored]), ALL),
    "scores shifted by one sample": (_shifted, {"middle", "planted-middle"}),
    "threshold turned round": (_threshold_turned, {"reader", "middle"}),
    **{fault: (apply, {"reader"}) for fault, apply in ANSWERS.items()},
    **{fault: (apply, ALL) for fault, apply in (WIDTHS | COUNTS).items()},
}
"""Fault -> its guards. No metric of this audit has a chance level that could be wrong."""


def passes(control: str, seed: int = 0) -> bool:
    """Whether a control passes; an error on the way is noticed too."""
    try:
        found = CONTROLS[control](seed).control
    except (HarnessError, AssertionError, IndexError):
        return False
    assert found is not None
    return found.passed


@pytest.mark.parametrize("control", CONTROLS)
def test_a_sound_instrument_passes_at_any_seed(control: str) -> None:
    seeds = range(3) if control in ("reader", "middle") else range(2)

    assert all(passes(control, seed) for seed in seeds)


def guarded() -> list[pytest.ParameterSet]:
    """Each fault with each of its guards: one of them, in turns, always; the others with ``-m slow``."""
    return [
        pytest.param(fault, control, marks=marks)
        for number, (fault, (_, guards)) in enumerate(FAULTS.items())
        for control, marks in in_turns(number, guards)
    ]


@pytest.mark.parametrize(("fault", "control"), guarded())
def test_every_fault_is_noticed_by_its_guards(fault: str, control: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault][0](monkeypatch)

    assert not passes(control)


def test_every_control_guards_against_something() -> None:
    assert all(guards for _, guards in FAULTS.values())
    assert set().union(*(guards for _, guards in FAULTS.values())) == set(CONTROLS)


def test_the_negative_control_allows_what_chance_gives_and_no_more() -> None:
    assert controls._by_chance(1, 8) < controls.LEVEL and controls._by_chance(0, 8) == 1.0
    assert controls._by_chance(1, 1000) > controls.LEVEL > controls._by_chance(2, 1000)
