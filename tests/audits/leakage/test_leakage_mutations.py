"""Break the instrument on purpose: which control notices which fault, and how often sound controls pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, wraps
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lm_audit.audits.leakage import memory as memorising
from lm_audit.audits.leakage import overview, published_place_test, signs, unseen_files
from lm_audit.audits.leakage.controls import planted as planting
from lm_audit.audits.leakage.controls.expected import FOUND, SILENT, negative_control, positive_control
from lm_audit.audits.leakage.controls.planted import Planted, made_up_items, measure, trained_on
from lm_audit.audits.leakage.controls.whole_reports import (
    reported_order,
    wrong_halves,
    wrong_memory,
    wrong_order,
    wrong_overview,
)
from lm_audit.audits.leakage.half_option import completion, conditions, cuts, probing, published
from lm_audit.audits.leakage.half_option.conditions import QuestionScores, question_scores
from lm_audit.audits.leakage.half_option.passes import measure_conditions
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.leakage.likelihood.plain import agreement
from lm_audit.audits.leakage.measured_memory import Memorisation
from lm_audit.audits.leakage.memory import measure_memorisation
from lm_audit.audits.leakage.orders import evidence as ordering
from lm_audit.audits.leakage.orders import permutations
from lm_audit.audits.leakage.orders import rows as row_tests
from lm_audit.models import LanguageModel
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.toy.criterion import TrainingRecord
from lm_audit.models.toy.tiny_model import tiny_model
from lm_audit.stats import Estimate
from lm_audit.stats.means import bounded
from tests.audits.faults_and_guards import put_once, remembered
from tests.audits.reporting_faults import COUNTS, REPORTING

SCORE = remembered(LanguageModel.loglikelihood)
GENERATE = remembered(LanguageModel.generate)
Scorer = Callable[..., list[TokenScores]]


MEASURED: dict[tuple[Any, ...], tuple[pd.DataFrame, list[list[dict[str, Any]]]]] = {}


def conditions_once(
    model: LanguageModel, items: Sequence[Item], *, on_rows: Any = None, **options: Any
) -> pd.DataFrame:
    """All conditions of some items, measured once by each scorer and each way of shuffling."""
    broken = (LanguageModel.loglikelihood, permutations.item_rng)
    key = (id(model), repr(items), repr(sorted(options.items())), *broken)
    if key not in MEASURED:
        passes: list[list[dict[str, Any]]] = []
        table = measure_conditions(model, items, on_rows=lambda rows: passes.append([*map(dict, rows)]), **options)
        MEASURED[key] = table, passes
    table, passes = MEASURED[key]
    for rows in passes if on_rows else []:
        on_rows([*map(dict, rows)])
    return table.copy()


@pytest.fixture(scope="module", autouse=True)
def measured_in_this_module() -> Iterator[None]:
    yield
    MEASURED.clear()


def plain_passes_once(model: LanguageModel) -> LanguageModel:
    """The model, whose plain forward passes (ids alone, as the controls make them) are computed once for each text."""
    forward, known = model.module.forward, {}

    @wraps(forward)
    def once(*arguments: Any, **options: Any) -> Any:
        if len(arguments) != 1 or options:
            return forward(*arguments, **options)
        key = tuple(arguments[0].flatten().tolist())
        if key not in known:
            known[key] = forward(*arguments)
        return known[key]

    # The protocol lets nobody replace a module's forward; the module of torch does.
    setattr(model.module, "forward", once)  # noqa: B010
    return model


class Trained:
    """The planted model, trained once for the table, and what sound controls are given."""

    def __init__(self) -> None:
        self.untouched = tiny_model()
        items = made_up_items(planting.QUESTIONS, seed=0)
        self.seen, self.unseen = ([x for k, x in enumerate(items) if k // 2 % 2 == side] for side in (0, 1))
        self.model: LanguageModel
        self.record: TrainingRecord
        self.model, self.record = trained_on(self.untouched, self.seen, seed=0)
        plain_passes_once(self.model)

    def measured(self, swapped: bool = False) -> Planted:
        halves = (self.unseen, self.seen) if swapped else (self.seen, self.unseen)
        return measure(self.untouched, self.model, self.record, *halves, seed=0)

    @cached_property
    def sound(self) -> Planted:
        return self.measured()

    def remembered(self, items: Sequence[Item]) -> tuple[Memorisation, list[dict[str, Any]]]:
        """The memorisation test of a half, and its rows."""
        rows: list[dict[str, Any]] = []
        benchmark = replace(planting._benchmark(items), name="seen" if items is self.seen else "unseen")
        found = measure_memorisation(
            self.model, benchmark, orders=planting.MIXED, seed=0, on_rows=lambda some: rows.extend(map(dict, some))
        )
        return found, rows

    @cached_property
    def memory(self) -> tuple[Memorisation, list[dict[str, Any]]]:
        return self.remembered(self.seen)

    @cached_property
    def other_memory(self) -> tuple[Memorisation, list[dict[str, Any]]]:
        return self.remembered(self.unseen)


@pytest.fixture(scope="module")
def trained() -> Trained:
    return Trained()


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageModel, "loglikelihood", SCORE)
    monkeypatch.setattr(LanguageModel, "generate", GENERATE)
    for module in (planting, memorising, published):
        monkeypatch.setattr(module, "measure_conditions", conditions_once)
    put_once(
        monkeypatch,
        (bounded, "bounded_limits"),
        (unseen_files, "bounded_limits"),
        (conditions, "power_paired_t"),
        (signs, "_reached_by_places"),
        (signs, "_sampled"),
    )


def passed(found: Planted) -> tuple[bool, bool]:
    controls = [judge(found).control for judge in (positive_control, negative_control)]
    assert all(controls)
    return controls[0].passed, controls[1].passed  # type: ignore[union-attr]


def test_sound_controls_pass(trained: Trained) -> None:
    found = trained.sound
    assert passed(found) == (True, True)
    assert found.seen.published.score > 3 and found.unseen.published.score < 1  # type: ignore[operator]
    assert "after" in positive_control(found).control.observed  # type: ignore[union-attr]


# Faults of the scorer, planted into the one call that every score comes from.


def changed(change: Callable[[list[TokenScores], np.random.Generator], list[TokenScores]]) -> Scorer:
    def scorer(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
        return change(list(SCORE(self, requests, **options)), np.random.default_rng(1))

    return scorer


def each(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Scorer:
    return changed(lambda found, rng: [replace(a, logprobs=change(a.logprobs, rng)) for a in found])


def between_items(found: list[TokenScores], rng: np.random.Generator) -> list[TokenScores]:
    """Answers handed to other texts of as many tokens."""
    out, lengths = list(found), np.array([len(a.logprobs) for a in found])
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        for place, source in zip(places, rng.permutation(places), strict=True):
            out[place] = replace(found[source], token_ids=found[place].token_ids)
    return out


def without_prompt(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Every continuation as if nothing stood before it."""
    found = SCORE(self, requests, **options)
    alone = SCORE(self, [([], request[1]) for request in requests], **options)
    # A text of one token alone has no score without a BOS; that one is kept.
    return [b if len(b.logprobs) == len(a.logprobs) else a for a, b in zip(found, alone, strict=True)]


SCORERS: dict[str, Scorer] = {
    "off by one token": each(lambda logprobs, rng: np.concatenate([logprobs[:1], logprobs[:-1]])),
    "one token short": each(lambda logprobs, rng: np.concatenate([[0.0], logprobs[1:]])),
    "prompts swapped between items": changed(between_items),
    "prompt ignored": without_prompt,
    "noise": each(lambda logprobs, rng: rng.normal(-2, 1, len(logprobs))),
    "constant": each(lambda logprobs, rng: np.full(len(logprobs), -1.0)),
    "sign reversed": each(lambda logprobs, rng: -logprobs),
    "all items identical": changed(
        lambda found, rng: [replace(a, logprobs=np.resize(found[0].logprobs, len(a.logprobs))) for a in found]
    ),
}


def told_by(faults: Collection[str], always: Collection[str]) -> list[pytest.ParameterSet]:
    """These faults, those that go the same way as one of ``always`` with the slow tests."""
    assert set(always) <= set(faults)
    return [pytest.param(one, id=one, marks=[] if one in always else [pytest.mark.slow]) for one in faults]


@pytest.mark.parametrize(
    "fault", told_by(SCORERS, ["off by one token", "prompts swapped between items", "prompt ignored", "constant"])
)
def test_faults_of_the_scorer(trained: Trained, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Both controls hold scores against plain passes, so that both must notice, whatever the reports look like."""
    monkeypatch.setattr(planting, "found_wrong", lambda *_: [])
    monkeypatch.setattr(planting, "misreported", lambda *_, **__: [])
    monkeypatch.setattr(LanguageModel, "loglikelihood", SCORERS[fault])
    assert passed(trained.measured()) == (False, False)


@pytest.mark.parametrize("part", ["faults", "score_p", "order_p"])
def test_faults_of_the_published_test(trained: Trained, part: str) -> None:
    """What ``test_published_mutations.py`` shows to be noticed decides both controls, and so do the two p-values."""
    found = trained.sound
    bad: Any = ("not so",)
    values: Any = (bad, bad) if part == "faults" else (0.01, 0.0001)
    positive, negative = values
    seen, unseen = (
        replace(half, published=replace(half.published, **{part: value}))
        for half, value in ((found.seen, positive), (found.unseen, negative))
    )
    assert passed(replace(found, seen=seen, unseen=unseen)) == (False, False)


# Faults of the bookkeeping: between the scores and the verdict.


def values_changed(change: Callable[[np.ndarray, tuple[str, ...]], np.ndarray]) -> Callable[..., QuestionScores]:
    def scores(table: Any, items: Any) -> QuestionScores:
        found = question_scores(table, items)
        return replace(found, values={name: change(v, found.conditions) for name, v in found.values.items()})

    return scores


def shuffled_labels(values: np.ndarray, conditions: tuple[str, ...]) -> np.ndarray:
    return np.random.default_rng(2).permuted(values, axis=1)


def favoured(values: np.ndarray, conditions: tuple[str, ...]) -> np.ndarray:
    """The published order gets what is not its own, as from a cache or a cut that treats it otherwise."""
    return np.asarray(values + 0.25 * (np.array(conditions) == "original"))


# Positive and negative control: whether each must notice.
BOOKS: dict[str, tuple[Callable[..., QuestionScores], bool, bool]] = {
    "conditions shuffled": (values_changed(shuffled_labels), True, False),
    "metric constant": (values_changed(lambda values, _: np.zeros_like(values)), True, True),
    "metric of the sign reversed": (values_changed(lambda values, _: -values), True, False),
    "all items identical": (values_changed(lambda values, _: np.repeat(values[:1], len(values), axis=0)), True, True),
    "published order favoured": (values_changed(favoured), False, True),
    "conditions shifted by one": (values_changed(lambda values, _: np.roll(values, 1, axis=1)), True, False),
    "direction turned round": (values_changed(lambda values, _: values.max() - values), True, False),
}


@pytest.mark.parametrize(
    "fault", told_by(BOOKS, ["conditions shuffled", "metric constant", "published order favoured"])
)
def test_faults_of_the_bookkeeping(trained: Trained, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    scores, by_positive, by_negative = BOOKS[fault]
    monkeypatch.setattr(planting, "question_scores", scores)
    positive, negative = passed(trained.measured())
    assert not (positive and by_positive) and not (negative and by_negative)
    assert not (positive and negative)


# Faults between rows and report; those of a measurement that the audit makes of fewer or of other items.


def _on_half_of_the_items(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = getattr(planting, name)

        def broken(model: Any, benchmark: Any, **options: Any) -> Any:
            return honest(model, replace(benchmark, items=benchmark.items[::2]), **options)

        patch.setattr(planting, name, broken)

    return apply


def _one_order_for_all(patch: pytest.MonkeyPatch) -> None:
    """The seed of an item's own orders knows nothing of the item."""
    patch.setattr(permutations, "item_rng", lambda item, seed: np.random.default_rng(seed))


def _near_copies_turned_round(patch: pytest.MonkeyPatch) -> None:
    honest = completion._row

    def row(*words: Any) -> dict[str, Any]:
        found = honest(*words)
        return {**found, "near_copy": None if found["near_copy"] is None else not found["near_copy"]}

    patch.setattr(completion, "_row", row)


def _put(module: Any, name: str, fault: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """``fault(honest, ...)`` in place of a function, where its module uses it."""
    return lambda patch: patch.setattr(module, name, partial(fault, getattr(module, name)))


def _of_p(field: str, change: Callable[[Estimate], Estimate]) -> Callable[..., Any]:
    def fault(honest: Any, *words: Any, **options: Any) -> Any:
        found = honest(*words, **options)
        return replace(found, **{field: change(getattr(found, field))})

    return fault


def _half_of_p(p: Estimate) -> Estimate:
    return replace(p, value=None if p.value is None else p.value / 2)


def _conditions_exchanged(honest: Any, table: Any, items: Any) -> Any:
    """Published and first shuffled order change names between the scores and the report."""
    names = {"original": "shuffled-1", "shuffled-1": "original"}
    return honest(table.assign(condition=table["condition"].replace(names)), items)


WHOLE: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "shards: published and shuffled exchanged": (
        "order",
        _put(row_tests, "sharded_test", lambda f, own, mixed: f([x[0] for x in mixed], [[one] * 3 for one in own])),
    ),
    "shards: last row of each forgotten": (
        "order",
        _put(row_tests, "_windows", lambda f, ids, order, size: f(ids, order[:-1], size)),
    ),
    "shards: half of them": (
        "order",
        _put(
            ordering, "row_order_test", lambda f, model, rows, *, shards, **o: f(model, rows, shards=shards // 2, **o)
        ),
    ),
    "shards: Fisher's p halved": ("order", _put(ordering, "row_order_test", _of_p("fisher", _half_of_p))),
    "shards: p of the mean two-sided": (
        "order",
        _put(ordering, "row_order_test", _of_p("t_test", lambda p: replace(p, value=min(1.0, 2 * (p.value or 0.0))))),
    ),
    "shards: gain the other way round": (
        "order",
        _put(ordering, "row_order_test", _of_p("gain", lambda g: replace(g, value=-(g.value or 0.0)))),
    ),
    "neighbours: half of the pairs": (
        "order",
        _put(ordering, "swap_test", lambda f, m, rows, pairs, files, **o: f(m, rows, pairs[::2], files[::2], **o)),
    ),
    "memory: conditions exchanged": ("measured", _put(memorising, "question_scores", _conditions_exchanged)),
    "memory: chance of the other baseline": (
        "memory",
        lambda patch: patch.setattr(memorising, "OTHER_ITEM", "other_question"),
    ),
    "memory: smallest effect by another power": (
        "measured",
        _put(conditions, "power_paired_t", lambda f, **o: f(**o, power=0.5)),
    ),
    "memory: share of the whole score": (
        "memory",
        _put(memorising, "mitigation_share", lambda f, original, shuffled, chance: f(original, shuffled, 0.0)),
    ),
    "benchmarks: not adjusted": ("benchmarks", _put(overview, "holm", lambda f, values: list(values))),
    "benchmarks: found the other way round": (
        "benchmarks",
        _put(overview, "_remembered", lambda f, *words: not f(*words)),
    ),
    **{f"order: {fault}": ("order", apply) for fault, apply in REPORTING.items()},
    **{f"memory: {fault}": ("memory", apply) for fault, apply in REPORTING.items()},
    **{f"benchmarks: {fault}": ("benchmarks", apply) for fault, apply in COUNTS.items()},
}
"""Faults of what the audit reports beside what the controls' tests ask for."""

REPORTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], bool, bool]] = {
    **{fault: (apply, True, True) for fault, apply in REPORTING.items()},
    "half of the questions ranked": (_on_half_of_the_items("option_order"), True, True),
    "half of the questions completed": (_on_half_of_the_items("completions"), True, False),
    "threshold of near copies turned round": (_near_copies_turned_round, True, False),
    "half of the texts scored": (_on_half_of_the_items("text_likelihood"), True, False),
    "one order for all questions": (_one_order_for_all, True, True),
}


# What any audit's report can get wrong is tried on every part of the report below, and here on all of it.
@pytest.mark.parametrize(
    "fault",
    told_by(
        REPORTED,
        [
            "chance levels 0.1 up",
            "every second row lost",
            "half of the texts scored",
            "threshold of near copies turned round",
            "one order for all questions",
        ],
    ),
)
def test_faults_of_the_report(trained: Trained, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    apply, by_positive, by_negative = REPORTED[fault]
    apply(monkeypatch)
    positive, negative = passed(trained.measured())
    assert not (positive and by_positive) and not (negative and by_negative)


def whole(trained: Trained, part: str) -> list[str]:
    """What is wrong with a part of the audit's report on the planted half, of scores that are made once."""
    if part == "benchmarks":
        return wrong_overview(trained.memory[0], trained.other_memory[0])
    if part == "memory":
        return wrong_memory(*trained.memory, orders=planting.MIXED)
    if part == "measured":
        return wrong_memory(*trained.remembered(trained.seen), orders=planting.MIXED)
    benchmark = trained.memory[0].benchmark
    ordered = reported_order(trained.model, benchmark, seed=0)
    return wrong_order(ordered, trained.model, benchmark, agreement(trained.model))


@pytest.mark.parametrize("part", ["order", "memory", "benchmarks"])
def test_nothing_is_wrong_with_a_whole_report(trained: Trained, part: str) -> None:
    assert not whole(trained, part)


@pytest.mark.parametrize("fault", WHOLE)
def test_faults_of_the_whole_report(trained: Trained, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Both controls fail where anything is told of these reports (the test after this one)."""
    part, apply = WHOLE[fault]
    whole(trained, part)
    apply(monkeypatch)
    assert whole(trained, part)


def _answered(change: Callable[[list[Any]], list[Any]]) -> tuple[Any, str, Callable[..., Any]]:
    honest = probing._answers
    return probing, "_answers", lambda *words, **options: change(honest(*words, **options))


def _cut(move: Callable[[int, str], int]) -> tuple[Any, str, Callable[..., Any]]:
    """Halves are cut nearest to another place than the option's middle."""
    honest = cuts._nearest_boundary
    return (
        cuts,
        "_nearest_boundary",
        lambda spans, begin, middle, whole: honest(spans, begin, move(middle, whole), whole),
    )


HALVES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "cut at the end": _cut(lambda middle, whole: len(whole)),
    "cut two characters late": _cut(lambda middle, whole: middle + 2),
    "cut two characters early": _cut(lambda middle, whole: middle - 2),
    "next tokens of the option before": _answered(lambda found: [
        replace(one, predicted=other.predicted, near_tie=other.near_tie)
        for one, other in zip(found, [found[-1], *found[:-1]], strict=True)
    ]),
    "one next token for all": _answered(lambda found: [replace(one, predicted=97) for one in found]),
    "every token is a hit": (probing, "byte_outcome", lambda token, suffix: "hit" if token else "miss"),
    "nothing is a hit": (probing, "byte_outcome", lambda token, suffix: "miss"),
    "bytes of the whole option": (probing, "_row", lambda *words, _=probing._row: _(*words) | {"suffix_bytes": 6}),
}  # fmt: skip


@pytest.mark.parametrize("fault", HALVES)
def test_faults_of_halves(trained: Trained, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    items = trained.seen[:3]

    def told() -> list[str]:
        table = measure_conditions(trained.model, items, orders=1, seed=0)
        rows: list[Any] = table.to_dict("records")
        return wrong_halves(rows, items)

    assert told() == []
    monkeypatch.setattr(*HALVES[fault])
    assert told()


def test_a_whole_report_that_is_wrong_fails_the_controls(trained: Trained) -> None:
    found = trained.sound
    seen, unseen = (replace(half, misreported=("not so",)) for half in (found.seen, found.unseen))
    assert passed(replace(found, seen=seen, unseen=unseen)) == (False, False)
    assert passed(replace(found, misreported=("not so",))) == (False, True)


def test_halves_swapped(trained: Trained) -> None:
    """Labels shuffled: what was planted is called unseen, and the other way round."""
    assert passed(trained.measured(swapped=True)) == (False, False)


def test_levels_are_what_they_say() -> None:
    """Of 150 null sets the place test finds more than 1 at a level of 0.00015 with a chance of 0.0003 at most, and an
    effect as large as planted text has is found in all of 100.
    """
    rng = np.random.default_rng(0)
    null = [published_place_test(rng.exponential(1, (24, 4)).tolist(), seed=k) for k in range(150)]
    assert sum((p.value or 0) <= SILENT for p in null) <= 1
    planted = rng.normal(0, 0.3, (100, 24, 4)) + 0.5 * (np.arange(4) == 0)
    assert all((published_place_test(x.tolist(), seed=0).value or 0) < FOUND for x in planted)
