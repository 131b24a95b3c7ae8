"""CrowS-Pairs' numbers of scores that are known beforehand: ties, several pairs of one writer, both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np

from lm_audit.audits.bias.benchmarks.crows_pairs.audit import crows_pairs
from lm_audit.audits.second_opinion import misreported
from lm_audit.models.scoring.results import TokenScores

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

WRITERS, EACH = 10, 3
"""Writers, and pairs of each, which are alike more often than those of two writers."""

TYPES, DIRECTIONS = ("made", "other"), ("stereo", "antistereo")

Sides = tuple[Sequence[float], Sequence[float]]
"""Log-probabilities of the words of both sentences, quarters of a nat: their sums are exact, so that ties are."""


def _made() -> tuple[list[dict[str, object]], list[Sides]]:
    """Rows as published and their scores: a word is edited, in every fourth pair to two, and the end is common."""
    rows: list[dict[str, object]] = []
    scores: list[Sides] = []
    for number in range(WRITERS * EACH):
        writer, place = divmod(number, EACH)
        lead, end = ((writer * 3 + (place == 2)) % 5 - 2) / 2, ((number * 7) % 5 - 2) / 4
        longer = number % 4 == 3
        rows.append(
            {
                "sent_more": f"Pair{number} says one thing here.",
                "sent_less": f"Pair{number} says {'some ' * longer}other thing here.",
                "stereo_antistereo": DIRECTIONS[number % 3 == 1],
                "bias_type": TYPES[number % 5 > 2],
                "anon_writer": f"writer {writer}",
            }
        )
        scores.append(((-1, -2, -3 + lead, -2 + end, -1), (-1, -2, *[-1.5] * longer, -3, -2, -1)))
    return rows, scores


def _answerer(rows: Sequence[Mapping[str, object]], scores: Sequence[Sides]) -> LanguageModel:
    """What takes a model's place: a word is a token, a sentence has the scores that are known."""
    words = sorted({word for row in rows for name in ("sent_more", "sent_less") for word in str(row[name]).split()})
    numbers = {word: number for number, word in enumerate(words, start=1)}

    def ids(text: object) -> list[int]:
        return [numbers[word] for word in str(text).split()]

    known = {
        tuple(ids(row[name])): side
        for row, sides in zip(rows, scores, strict=True)
        for name, side in zip(("sent_more", "sent_less"), sides, strict=True)
    }

    def scored(target: Sequence[int]) -> TokenScores:
        found = np.array(known[tuple(target)], dtype=np.float64)
        return TokenScores(np.array(target), found, np.zeros(len(found), dtype=np.int64), False, False)

    class Tokenizer:
        bos_token_id = 0

        def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
            return {"input_ids": ids(text)}

    model = SimpleNamespace(
        tokenizer=Tokenizer(),
        dtype="float64",
        loglikelihood=lambda requests, **_: [scored(target) for _, target in requests],
    )
    return cast("LanguageModel", model)  # it has what is asked of a model here, and no more


def wrong_of_known_pairs() -> tuple[int, list[str]]:
    """How many numbers of made pairs were reported, and what of them is not what counting gives."""
    rows, scores = _made()
    evidence = crows_pairs(_answerer(rows, scores), rows)
    totals = [(sum(more), sum(less)) for more, less in scores]
    means = [(sum(more) / len(more), sum(less) / len(less)) for more, less in scores]
    ends = [(sum(more[-2:]), sum(less[-2:])) for more, less in scores]
    gaps = [more - less for more, less in totals]
    shares = {"": totals, "_mean_normalised": means, "_suffix": ends}
    shares["_clean"] = [pair for pair, (more, less) in zip(totals, scores, strict=True) if len(more) == len(less)]
    for label, column, kinds in (("direction", "stereo_antistereo", DIRECTIONS), ("type", "bias_type", TYPES)):
        for kind in kinds:
            shares[f".{label}.{kind}"] = [pair for pair, row in zip(totals, rows, strict=True) if row[column] == kind]
    values = {f"bias.crows_pct_stereotype{name}": _share(pairs) for name, pairs in shares.items()}
    chances: dict[str, float | tuple[float, float]] = dict.fromkeys(values, 50.0)
    values["bias.crows_signed_diff"], chances["bias.crows_signed_diff"] = sum(gaps) / len(gaps), 0.0
    values["bias.crows_likelihood_diff"] = sum(map(abs, gaps)) / len(gaps)
    faults = misreported(evidence, values=values, chances=chances, counts=[({}, len(rows))])
    return len(evidence.metrics), faults


def _share(pairs: Sequence[tuple[float, float]]) -> float:
    """In percent; a tie counts half."""
    won = sum(more > less for more, less in pairs) + sum(more == less for more, less in pairs) / 2
    return 100 * won / len(pairs)
