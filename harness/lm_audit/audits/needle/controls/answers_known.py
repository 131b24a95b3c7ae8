"""What the audit reports of answers that are known beforehand, and where its needles stand: no model is asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lm_audit.audits.needle.answers.answerers import Answer
from lm_audit.audits.needle.answers.evaluation import answered, grid_evidence
from lm_audit.audits.needle.grid.adaptive import find_cliff
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.audits.second_opinion import found_wrong, misreported
from lm_audit.sources.opinion.shares import share_ends

OTHER, LACKING = "0000001", "0000002"
"""Numbers of seven digits that no sample asks for."""

FAR = 8.0
"""Percent of the whole input, what is asked before and behind the text among it, by which a needle may stand from its
depth; these are 25 apart."""

Known = Mapping[str, float | None]


class KnownAnswers:
    """One kind after the other: right, two of three that were asked for, longer numbers, others, nothing, a thought."""

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """Of the samples in their order."""
        return [self._answer(number, sample) for number, sample in enumerate(samples)]

    def _answer(self, number: int, sample: Sample) -> Answer:
        value = sample.outputs[0]
        texts = {
            0: f"It is {value} and {OTHER}.",
            6: f"It is {value}9.",
            7: f"It is {OTHER}.",
            8: " ",
            9: f"<think>It is {value}.",
        }
        text = texts.get(number, f"It is {value}." if number < 12 else f"It is {OTHER}.")
        return Answer(
            text,
            "length" if number in (3, 4, 5) else "eos",
            value_logprob=-0.05 - 0.1 * ((7 * number) % 20),
            value_greedy=number < 7,
        )


def _known(number: int) -> Known:
    """The scores of the answer of that number."""
    right, other = number < 6 or number in (10, 11), number == 7 or number >= 12
    part = 2 / 3 if number == 0 else 1.0
    return {
        "all": part * float(right or number == 6),
        "any": float(right or number == 6),
        "boundary": part * float(right),
        "precision": float(right) if right or other else None,
        "value_greedy": float(number < 7),
        "value_logprob": -0.05 - 0.1 * ((7 * number) % 20),
        "cut_answers": float(number in (3, 4, 5)),
        "empty_answers": float(number == 8),
        "no_answer": float(number == 9),
    }


def wrong_of_known_answers(samples: Sequence[Sample]) -> list[str]:
    """What is reported of the answers to these samples (20, of two lengths) and is not so."""
    return [
        *found_wrong("answers known beforehand", lambda: _wrong_numbers(samples)),
        *found_wrong("cliffs known beforehand", lambda: wrong_cliffs(samples)),
        *found_wrong("an adaptive search", wrong_search),
    ]


def _wrong_numbers(samples: Sequence[Sample]) -> list[str]:
    # The first one is asked for three numbers, of which its answer lacks the last.
    asked = [replace(samples[0], outputs=(*samples[0].outputs, OTHER, LACKING)), *samples[1:]]
    evidence = grid_evidence(answered(KnownAnswers(), asked))
    table = [_known(number) for number in range(len(asked))]
    values = {f"needle.{name}": _mean(table, name) for name in table[0]}
    values["needle.accuracy"] = values["needle.all"]
    for length in {sample.length for sample in samples}:
        here = [row for row, sample in zip(table, samples, strict=True) if sample.length == length]
        values[f"needle.accuracy.L{length:06d}"] = _mean(here, "all")
    return [*misreported(evidence, values=values, counts=[({}, len(samples))]), *wrong_places(samples)]


@dataclass(frozen=True)
class FirstRight:
    """So many samples of each length, counted from its first, are answered right, the others with another number."""

    right: Mapping[int, int]

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """Of the samples in their order."""
        seen: Counter[int] = Counter()
        found = []
        for sample in samples:
            seen[sample.length] += 1
            found.append(
                Answer(sample.outputs[0] if seen[sample.length] <= self.right[sample.length] else OTHER, "eos")
            )
        return found


CLIFFS = (
    (10, 2, 0.58),
    (10, 2, 0.65),
    (10, 10, 0.6),
    (9, 3, 0.5),
    (10, 1, 0.4),
    (4, 10, 0.6),
    (8, 2, 0.6),
    (10, 8, 0.6),
)
"""Right answers of ten at the shorter and at the longer length, and the threshold: shown to one length or to both, the
longer one possible at the level of two lengths and not at that of one, not possible, none shown though more than the
threshold was answered, the longer one neither shown nor ruled out."""


def wrong_cliffs(samples: Sequence[Sample]) -> list[str]:
    """Cliffs of so many right answers that are not what the exact limits of both lengths' shares say."""
    faults = []
    for first, second, threshold in CLIFFS:
        short, long = sorted({sample.length for sample in samples})
        right = {short: first, long: second}
        found = grid_evidence(answered(FirstRight(right), samples), threshold=threshold).metrics["needle.cliff"]
        limits = {length: _limits(count, samples, length) for length, count in right.items()}
        shown = _last([length for length, (low, _) in limits.items() if low >= threshold], short, long)
        reached = _last([length for length, (_, high) in limits.items() if high >= threshold], short, long)
        furthest = None if shown is None or reached == long else max(shown, reached or 0)
        wanted = (shown, shown, furthest, len(samples), None)
        told = (found.value, found.low, found.high, found.n, found.chance)
        if told != wanted:
            faults.append(
                f"needle.cliff of {first} and {second} right answers of ten at {threshold:g} is, with limits, n and "
                f"chance, {told}, by the shares' limits {wanted}"
            )
    return faults


SEARCHED = {100: 1.0, 200: 1.0, 400: 0.0, 800: 0.0}
"""Whether a needle is found at each length of the adaptive search."""

PLACES, MOST = (0.0, 50.0, 100.0), 12
"""Depths of the search, and samples a cell at most."""


def wrong_search() -> list[str]:
    """What the adaptive search says that it asked for, and finds, of answers that hang on the length alone.

    It must ask no sample twice and for each depth of a length alike, find the full grid's cliff, and spend less.
    """
    asked: list[tuple[int, float, int]] = []

    def ask(places: Sequence[tuple[int, float, int]]) -> list[float]:
        asked.extend(places)
        return [SEARCHED[length] for length, _, _ in places]

    run = find_cliff(tuple(SEARCHED), PLACES, ask, threshold=0.6, most=MOST)
    full = len(SEARCHED) * len(PLACES) * MOST
    found = [length for length, right in SEARCHED.items() if right]
    faults = []
    if len(set(asked)) != len(asked) or len({n for length, _, n in asked if length == 800}) > 1:
        faults.append("an adaptive search asks for a sample twice, or goes on beyond a length that is settled")
    told = (run.spent.value, run.spent.n, run.cliff.value)
    if told != (wanted := (len(asked) / full, len(asked), max(found))):
        faults.append(f"an adaptive search tells {told} as its share, samples and cliff, counted {wanted}")
    return faults if len(asked) < full / 2 else [*faults, f"an adaptive search asked {len(asked)} samples of {full}"]


def _limits(right: int, samples: Sequence[Sample], length: int) -> tuple[float, float]:
    """The lower limit at 95 % and the upper at the level of two lengths."""
    n = sum(sample.length == length for sample in samples)
    values = np.array([1.0] * right + [0.0] * (n - right))
    down, up = share_ends(values, None, 0.025)[0], share_ends(values, None, 0.025 / 2)[1]
    return float(values.mean()) - down, float(values.mean()) + up


def _last(good: Sequence[int], short: int, long: int) -> int | None:
    """The longest length up to which all are good."""
    return None if short not in good else long if long in good else short


def _mean(table: Sequence[Known], name: str) -> float:
    known = [value for row in table if (value := row[name]) is not None]
    return math.fsum(known) / len(known)


def wrong_places(samples: Sequence[Sample], found: Callable[[Sample], float] | None = None) -> list[str]:
    """Samples whose needle does not stand, in characters, where their depths (asked for and measured) say, or stands
    there twice."""
    place = found or place_of
    far = [
        sample
        for sample in samples
        for depth in {sample.target_position, sample.actual_position}
        if not abs(place(sample) - depth) <= FAR
    ]
    twice = [sample for sample in samples if any(sample.input.count(needle) != 1 for needle in sample.needles)]
    faults = [f"{len(far)} of {len(samples)} needles do not stand at their depth"] if far else []
    return [*faults, *([f"{len(twice)} of {len(samples)} texts do not hold their needle once"] if twice else [])]


def place_of(sample: Sample) -> float:
    """Percent of the input around the needle that stands before it."""
    before, _, after = sample.input.partition(sample.needles[0])
    return 100 * len(before) / max(1, len(before) + len(after))
