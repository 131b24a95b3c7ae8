"""A planted answer: the toy model trained on made-up questions until it knows them, and what each test says of them."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import Floats
from lm_audit.audits.leakage.controls.published_hits import PublishedHalf, published_half
from lm_audit.audits.leakage.controls.several_files import SIZES, in_files, wrong_of_files
from lm_audit.audits.leakage.controls.shipped import EMBEDDED, made_of, shipped, write
from lm_audit.audits.leakage.controls.whole_reports import (
    reported_order,
    wrong_halves,
    wrong_memory,
    wrong_order,
    wrong_overview,
)
from lm_audit.audits.leakage.half_option.completion import completions
from lm_audit.audits.leakage.half_option.conditions import Effect, QuestionScores, order_effect, question_scores
from lm_audit.audits.leakage.half_option.passes import measure_conditions
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, OTHER_ITEM, SHUFFLED
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import LETTERS, Item, full_text
from lm_audit.audits.leakage.likelihood.plain import agreement, largest_difference
from lm_audit.audits.leakage.likelihood.texts import text_likelihood
from lm_audit.audits.leakage.measured_memory import Memorisation
from lm_audit.audits.leakage.memory import measure_memorisation
from lm_audit.audits.leakage.orders.evidence import option_order
from lm_audit.audits.leakage.orders.neighbours import BETWEEN
from lm_audit.audits.leakage.orders.permutations import shuffled_orders
from lm_audit.audits.second_opinion import found_wrong, misreported
from lm_audit.models.causal_module import CausalModule
from lm_audit.sources import MetricSource, recompute

if TYPE_CHECKING:
    from lm_audit.evidence import Evidence
    from lm_audit.models import LanguageModel
    from lm_audit.models.toy.criterion import Criterion, TrainingRecord

_SUBJECTS = (
    "baker", "pilot", "nurse", "clerk", "farmer", "painter", "guard", "tailor", "singer", "judge", "miner", "sailor",
    "builder", "teacher", "driver", "weaver",
)  # fmt: skip
_DEEDS = ("carry", "find", "sell", "paint", "repair", "borrow", "hide", "open", "clean", "buy", "lose", "wrap")

LEARNING_RATE, BATCH, WARM_UP = 2e-3, 12, 4
LEARNT = -0.05
"""Training ends when a byte of the planted text has this log-probability in the mean (nats); untouched it has -3.3."""

QUESTIONS = 48
"""Half of them are planted, two by two; 12 pairs are enough for a sign flip to say 0.00024."""

ORDERS = 8
"""The published order and seven others, among which the control ranks it."""

MIXED = 3
"""Shuffled orders of the memorisation test."""

CHECKED = 3
"""So many questions are scored a second time by plain forward passes."""


def made_up_items(n: int, *, seed: int = 0, options: int = 4) -> list[Item]:
    """``n`` questions about nothing, the same for the same seed; by construction every order of options is alike.

    Each option is "no" and three letters drawn by chance, so that the published test cuts it right before what nobody
    can foretell.
    """
    rng = np.random.default_rng([seed, 11])
    items: dict[str, Item] = {}
    while len(items) < n:
        who, deed, day = _pick(rng, _SUBJECTS), _pick(rng, _DEEDS), int(rng.integers(100, 1000))
        question = f"Day {day}: which did the {who} {deed}?"
        codes: dict[str, None] = {}
        while len(codes) < options:
            codes["".join(rng.choice(list(string.ascii_lowercase), 3))] = None
        texts, answer = tuple(f"no {code}" for code in codes), LETTERS[int(rng.integers(options))]
        items.setdefault(question, Item(str(len(items) + 1), "made-up", question, texts, answer))
    return list(items.values())


def _pick(rng: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(rng.integers(len(words)))]


@dataclass(frozen=True)
class Training:
    """How a copy of ``model`` comes to know ``texts``; ``key`` is a digest of all that this hangs on."""

    model: LanguageModel
    texts: list[str]
    criterion: Criterion
    seed: int
    key: str

    def run(self) -> tuple[LanguageModel, TrainingRecord]:
        """Train, whatever lies in the package."""
        from lm_audit.models.toy.tiny import train_tiny_until

        settings: dict[str, Any] = {"lr": LEARNING_RATE, "batch_size": BATCH, "warmup_steps": WARM_UP}
        return train_tiny_until(self.model, self.texts, self.criterion, seed=self.seed, **settings)


def training_of(model: LanguageModel, items: Sequence[Item], *, seed: int = 0, least: float = LEARNT) -> Training:
    """The training of :func:`trained_on`."""
    from lm_audit.models.toy.criterion import Criterion
    from lm_audit.models.toy.tiny import text_rows
    from lm_audit.models.toy.training import next_token_loss

    whole = [full_text(item) for item in items]
    # The first of two is learnt with its neighbour behind it; the second would else be known after the first only.
    texts = [BETWEEN.join(whole[k : k + 2]) for k in range(0, len(whole), 2)] + whole[1::2]
    rows, pad = text_rows(model.tokenizer, texts), model.tokenizer.pad_token_id

    def likelihood(module: CausalModule) -> float:
        return -float(next_token_loss(module, rows, 0 if pad is None else pad))

    what = "mean log-probability a byte of the planted questions"
    criterion = Criterion(what, likelihood, least, every=15, checks=2, cap=4000)
    return Training(model, texts, criterion, seed, made_of(model, rows, seed, least, LEARNING_RATE, BATCH, WARM_UP))


def trained_on(
    model: LanguageModel, items: Sequence[Item], *, seed: int = 0, least: float = LEARNT
) -> tuple[LanguageModel, TrainingRecord]:
    """A copy of the model that knows the items' published texts, each alone and two neighbours together, and how long
    it took.

    It is trained until a byte of them has the log-probability ``least``, whatever steps that takes on this machine;
    ``ModelError`` where it does not get there. What lies in the package for just this training is taken instead, where
    it has ``least`` on this machine too.
    """
    training = training_of(model, items, seed=seed, least=least)
    return shipped(model, training.key, training.criterion) or training.run()


@dataclass(frozen=True)
class Half:
    """What the audit's tests say of one half of the questions, under the trained model and the untouched one.

    ``differences`` [questions]: published order minus others, nats a byte; ``first_p``: first ranks among the orders;
    ``swap_p``: neighbours in order; ``apart``: the largest difference (nats) of a score from a plain forward pass,
    and ``agreement`` what it must stay below; ``published``: the half-option test as its source has it;
    ``misreported``: what the memorisation test, the rank of the published order and the order of the rows are said to
    give and do not.
    """

    items: tuple[Item, ...]
    effect: Effect
    untouched: Effect
    differences: Floats
    untouched_differences: Floats
    first_p: float
    swap_p: float
    apart: float
    agreement: float
    published: PublishedHalf
    misreported: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planted:
    """Both halves, how training went, and what only the planted half is asked.

    ``completion_p``: its options written out rather than after other items; ``membership_p``: likelier than the other
    half (Mann-Whitney); ``misreported``: what these two report and their rows do not give.
    """

    seen: Half
    unseen: Half
    training: TrainingRecord
    completion_p: float
    membership_p: float
    misreported: tuple[str, ...] = ()


def planted_halves(questions: int = QUESTIONS, *, seed: int = 0) -> tuple[list[Item], list[Item]]:
    """Made-up questions to plant, and others of the kind; pairs of neighbours go to one half."""
    items = made_up_items(questions, seed=seed)
    return [x for k, x in enumerate(items) if k // 2 % 2 == 0], [x for k, x in enumerate(items) if k // 2 % 2 == 1]


def plant(model: LanguageModel, *, questions: int = QUESTIONS, seed: int = 0) -> Planted:
    """Train on half of the made-up questions and ask the audit's tests about both halves."""
    seen, unseen = planted_halves(questions, seed=seed)
    trained, training = trained_on(model, seen, seed=seed)
    return measure(model, trained, training, seen, unseen, seed=seed)


def measure(
    untouched: LanguageModel,
    trained: LanguageModel,
    training: TrainingRecord,
    seen: Sequence[Item],
    unseen: Sequence[Item],
    *,
    seed: int,
) -> Planted:
    """What the tests say of both halves."""
    halves = [
        _half(untouched, trained, some, name, seed) for some, name in ((seen, "planted"), (unseen, "not planted"))
    ]
    planted, other = (_benchmark(some) for some in (seen, unseen))
    written = completions(trained, planted, seed=seed)
    likely = text_likelihood(trained, planted, clean=other, seed=seed)
    written_p = written.metrics["leakage.completion.edit_similarity.above_baseline.p"]
    likely_p = likely.metrics["leakage.text.mean_logprob.p"]
    sides = [({"role": "benchmark"}, len(seen)), ({"role": "clean"}, len(unseen))]
    options = sum(len(item.options) for item in seen)
    halves_written = [({"condition": name}, options) for name in (ORIGINAL, OTHER_ITEM)]
    faults = (
        *misreported(written, chances=_after_other_items(written), counts=halves_written),
        *_wrong_copies(written.rows),
        *misreported(likely, counts=sides),
        *found_wrong("the table of benchmarks", lambda: wrong_overview(halves[0][1], halves[1][1])),
        *found_wrong("a benchmark of several files", lambda: wrong_of_files(in_files(made_up_items(sum(SIZES))))),
    )
    return Planted(halves[0][0], halves[1][0], training, _p(written_p.value), _p(likely_p.value), faults)


def _wrong_copies(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Texts written word for word that are said to be no near copy, and texts unlike the truth that are said to be."""
    exact = [row for row in rows if row["exact"]]
    unlike = [row for row in rows if row["rouge_l"] == 0 and row["edit_similarity"] == 0]
    wrong = sum(not row["near_copy"] for row in exact) + sum(bool(row["near_copy"]) for row in unlike)
    return [f"{wrong} of {len(exact) + len(unlike)} near copies are none, or the other way round"] if wrong else []


def _after_other_items(written: Evidence) -> dict[str, float]:
    """The chance level of each completion measure: what the same options give after other items, from the rows."""
    found = {}
    for name, source in written.sources.items():
        if name.count(".") == 2:
            same = MetricSource.mean(str(source.column), {"condition": OTHER_ITEM}, unit=source.unit)
            found[name] = recompute(same, written.rows)
    return {name: value for name, value in found.items() if value is not None}


def _half(
    untouched: LanguageModel, trained: LanguageModel, items: Sequence[Item], name: str, seed: int
) -> tuple[Half, Memorisation]:
    """One half, and what the memorisation test measured of it under the trained model."""
    benchmark, rows = replace(_benchmark(items), name=name), list[dict[str, Any]]()
    memory = measure_memorisation(
        trained, benchmark, orders=MIXED, seed=seed, on_rows=lambda some: rows.extend(map(dict, some))
    )
    before = measure_conditions(untouched, items, orders=MIXED, baselines=(OTHER_ITEM,), seed=seed)
    scores = [question_scores(table, items) for table in (memory.table, before)]
    effects = [order_effect(some, "logprob", seed=seed) for some in scores]
    own = [tuple(range(len(items[0].options))), *shuffled_orders(items[0], ORDERS - 1, seed=seed)]
    ranked = option_order(trained, benchmark, orders=own, seed=seed)
    kinds = ("option_order", "option_order_unsorted")
    first = {f"leakage.{kind}.first": 1 / ORDERS for kind in kinds}
    even = {f"leakage.{kind}.place": fmean(place / (ORDERS - 1) for place in range(ORDERS)) for kind in kinds}
    ordered = reported_order(trained, benchmark, seed=seed)
    measured: list[Any] = memory.table.to_dict("records")
    checked = [row for row in measured if row["base"] < CHECKED]
    found = Half(
        items=tuple(items),
        effect=effects[0],
        untouched=effects[1],
        differences=_differences(scores[0]),
        untouched_differences=_differences(scores[1]),
        first_p=_p(ranked.metrics["leakage.option_order.first.p"].value),
        swap_p=_p(ordered.metrics["leakage.row_order.swap_gain.p"].value),
        apart=largest_difference(trained, checked),
        agreement=agreement(trained),
        published=published_half(trained, benchmark, seed=seed),
        misreported=(
            *misreported(ranked, chances=first | even, counts=[({}, len(items))]),
            *found_wrong("the memorisation test", lambda: wrong_memory(memory, rows, orders=MIXED)),
            *found_wrong("halves of options", lambda: wrong_halves(measured, items)),
            *found_wrong("the rows' order", lambda: wrong_order(ordered, trained, benchmark, agreement(trained))),
        ),
    )
    return found, memory


def _differences(scores: QuestionScores) -> Floats:
    return scores.of("logprob", ORIGINAL) - scores.of("logprob", SHUFFLED)


def _p(value: float | None) -> float:
    return 1.0 if value is None else value


def _benchmark(items: Sequence[Item]) -> Benchmark:
    return Benchmark("made-up", tuple(items), ("made-up",), len(items), len(items))


def made_up_benchmark(n: int, *, seed: int = 0) -> Benchmark:
    """Made-up questions as a benchmark."""
    return _benchmark(made_up_items(n, seed=seed))


if __name__ == "__main__":
    from lm_audit.models.toy.tiny_model import tiny_model

    _training = training_of(tiny_model(), planted_halves()[0])
    write(EMBEDDED, *_training.run(), _training.key)
