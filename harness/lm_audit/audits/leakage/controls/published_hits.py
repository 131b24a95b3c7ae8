"""The published half-option test on made-up questions: what it reports of one half, and whether that is so.

Every option ends in letters that were drawn by chance, and the published cut stands before the first of them. Whatever
a model expects there that is a letter is right with probability 1/26, unless it has seen the text: the number of hits
by chance is known exactly, whatever the model.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_audit.audits.leakage.half_option.prefixes import published_match
from lm_audit.audits.leakage.half_option.published import MIXED, published_memorisation
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, OTHER_ITEM
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import LETTERS, Item, shuffle_options
from lm_audit.audits.leakage.items.style import poisson_binomial
from lm_audit.audits.leakage.likelihood.plain import published_guesses
from lm_audit.audits.leakage.orders.permutations import shuffled_orders
from lm_audit.audits.second_opinion import misreported

if TYPE_CHECKING:
    from lm_audit.evidence import Evidence
    from lm_audit.models import LanguageModel

CHANCE = 1 / len(string.ascii_lowercase)
"""Of a letter that was drawn by chance."""

CHECKED = 3
"""So many questions are probed a second time by plain forward passes."""


@dataclass(frozen=True)
class PublishedHalf:
    """What the published test reports of one half.

    ``score`` and ``mixed``: hits a question, of four, in the published order and in mixed ones; ``score_p``: as many
    hits by chance; ``order_p``: the reported p-value of published against mixed; ``faults``: what was reported and is
    not so.
    """

    score: float | None
    mixed: float | None
    score_p: float
    order_p: float
    faults: tuple[str, ...]


def published_half(model: LanguageModel, benchmark: Benchmark, *, seed: int) -> PublishedHalf:
    """Ask the published test about made-up questions, and hold its answer against plain forward passes."""
    evidence = published_memorisation(model, benchmark, seed=seed)
    rows = {name: [row for row in evidence.rows if row["condition"] == name] for name in (ORIGINAL, MIXED)}
    order_p = evidence.metrics["leakage.published.mitigation.p"].value
    return PublishedHalf(
        score=evidence.metrics["leakage.published.score"].value,
        mixed=evidence.metrics["leakage.published.score_shuffled"].value,
        score_p=hits_by_chance(rows[ORIGINAL]),
        order_p=1.0 if order_p is None else order_p,
        faults=(
            *_wrong_metrics(evidence, rows, len(benchmark.items)),
            *_wrong_hits(model, rows, benchmark.items[:CHECKED], seed),
            *_alike(rows[ORIGINAL]),
            *_mixed_alike(benchmark.items, seed),
            *_misreported(evidence, benchmark.items),
        ),
    )


def _misreported(evidence: Evidence, items: Sequence[Item]) -> list[str]:
    """What does not follow from the rows; chance is what options get after other items: of one file, over questions."""
    most = float(max(len(item.options) for item in items))
    hits = {
        name: sum(bool(row["hit"]) for row in evidence.rows if row["condition"] == name)
        for name in (ORIGINAL, MIXED, OTHER_ITEM)
    }
    names = [name for name in evidence.metrics if name.startswith("leakage.published.score")]
    limits = {name: (0.0, float(most)) for name in names} | {
        "leakage.published.mitigation": (-float(most), float(most))
    }
    options = sum(len(item.options) for item in items)
    chances = dict.fromkeys(names, hits[OTHER_ITEM] / len(items))
    name = "leakage.published.mitigation_share"
    share, values = evidence.metrics.get(name), dict[str, float]()
    if share is not None:
        above = hits[ORIGINAL] - hits[OTHER_ITEM]
        if share.chance is not None:
            chances[name] = 0.0
        if above > 0:
            values[name] = (hits[ORIGINAL] - hits[MIXED]) / above
        elif share.value is not None:
            return [f"{name} is {share.value:.4g} of a score that is not above chance"]
    counts = [({"condition": name}, options) for name in (ORIGINAL, MIXED, OTHER_ITEM)]
    return misreported(evidence, chances=chances, limits=limits, values=values, counts=counts)


def hits_by_chance(rows: Sequence[Mapping[str, object]]) -> float:
    """The exact probability of as many hits where nothing is remembered.

    White space alone is a hit by the published rule whatever follows, so its chance is 1.
    """
    chances = [CHANCE if str(row["predicted"]).strip() else 1.0 for row in rows]
    hits = sum(bool(row["hit"]) for row in rows)
    return min(1.0, float(poisson_binomial(chances)[hits:].sum())) if rows else 1.0


def _wrong_metrics(evidence: Evidence, rows: Mapping[str, Sequence[Mapping[str, object]]], questions: int) -> list[str]:
    """Reported scores and hits that do not follow from the rows: one file, so hits over questions."""
    score, mixed = (sum(bool(row["hit"]) for row in rows[name]) / questions for name in (ORIGINAL, MIXED))
    known = {"score": score, "score_shuffled": mixed, "mitigation": score - mixed}
    faults = []
    for name, value in known.items():
        found = evidence.metrics[f"leakage.published.{name}"].value
        if found is None or not abs(found - value) <= 1e-9:
            faults.append(f"leakage.published.{name} is {found}, its rows give {value:.4g}")
    both = [row for some in rows.values() for row in some]
    wrong = sum(bool(row["hit"]) != published_match(str(row["predicted"]), str(row["suffix"])) for row in both)
    return [*faults, f"{wrong} hits of {len(both)} do not follow from the next token"] if wrong else faults


def _wrong_hits(
    model: LanguageModel, rows: Mapping[str, Sequence[Mapping[str, object]]], items: Sequence[Item], seed: int
) -> list[str]:
    """Options of the first questions where plain passes go on otherwise, or that have another second half."""
    wrong, compared = 0, 0
    for item in items:
        for name in (ORIGINAL, MIXED):
            order = range(len(item.options)) if name == ORIGINAL else shuffled_orders(item, 1, seed=seed)[0]
            found = {row["item"]: row for row in rows[name] if row["question"] == item.key}
            known = published_guesses(model, shuffle_options(item, tuple(order)))
            for option, (texts, suffix) in zip(order, known, strict=True):
                row = found.get(f"{item.key}:{LETTERS[option]}:{name}")
                compared += 1
                wrong += row is None or str(row["predicted"]) not in texts or row["suffix"] != suffix
    return [f"{wrong} of {compared} next tokens are not those of plain forward passes"] if wrong else []


def _alike(rows: Sequence[Mapping[str, object]]) -> list[str]:
    different = len({row["suffix"] for row in rows})
    return [f"only {different} different second halves of {len(rows)} options"] if 2 * different < len(rows) else []


def _mixed_alike(items: Sequence[Item], seed: int) -> list[str]:
    """Items that are all mixed by one order, as where the generator's seed knows nothing of the item."""
    orders = {shuffled_orders(item, 1, seed=seed)[0] for item in items}
    return [f"all {len(items)} questions are mixed by one order"] if len(orders) == 1 < len(items) else []
