"""Which of two neighbouring rows comes first: a test of the rows' order that rows on one theme cannot mislead.

A file that is likelier in its order than shuffled may only keep its themes together. Swapping the rows of one pair
keeps them together too; so, unless the order itself was learned, either order of a pair is likelier as often as not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import mean_of
from lm_audit.audits.leakage.signs import paired_sign_flip
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

BETWEEN = "\n\n"


@dataclass(frozen=True)
class Neighbours:
    """Two rows that follow each other in their file, by their places in a list of rows."""

    first: int
    second: int


@dataclass(frozen=True)
class SwapTest:
    """Pairs of neighbours in the published order against swapped: ``gain`` in nats a pair, exact sign-flip ``p``.

    ``rows``: a mapping a pair; ``too_long`` counts pairs that the model cannot read together.
    """

    gain: Estimate
    p: Estimate
    rows: tuple[dict[str, Any], ...]
    too_long: int


def neighbour_places(places: Sequence[int], files: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Disjoint pairs of neighbours among items at ``places`` of their ``files``; without places all are neighbours."""
    known = list(places) or list(range(len(files)))
    k = 0
    while k + 1 < len(known):
        if files[k] == files[k + 1] and known[k] + 1 == known[k + 1]:
            yield k, k + 1
            k += 2
        else:
            k += 1


def swap_test(
    model: LanguageModel, rows: Sequence[str], pairs: Sequence[Neighbours], files: Sequence[str], *, seed: int = 0
) -> SwapTest:
    """Is each pair of ``rows`` likelier in its order than swapped? ``files`` names the file of each pair.

    The null hypothesis, that both orders of a pair are alike, holds for rows in any grouping by theme whose order
    within is by chance; the sign-flip test is then exact. Above 0 where the order is remembered. The interval of the
    mean speaks of these files: what a file that was not drawn may gain is known of none, and a few may hold it all.
    """
    texts = [[rows[p.first] + BETWEEN + rows[p.second], rows[p.second] + BETWEEN + rows[p.first]] for p in pairs]
    ids = (
        model.tokenizer([text for both in texts for text in both], add_special_tokens=False)["input_ids"]
        if texts
        else []
    )
    window = model.context_window or 10**9
    fits = [max(len(ids[2 * k]), len(ids[2 * k + 1])) < window for k in range(len(pairs))]
    scores = iter(model.loglikelihood([([], some) for k, some in enumerate(ids) if fits[k // 2]]))
    found: list[dict[str, Any]] = []
    for pair, file, fit in zip(pairs, files, fits, strict=True):
        if fit:
            own, swapped = next(scores).total, next(scores).total
            found.append({"first": pair.first, "second": pair.second, "file": file, "swap_gain": own - swapped})
    gains = np.array([row["swap_gain"] for row in found], dtype=np.float64)
    gain = mean_of(
        gains,
        [row["file"] for row in found],
        unit="nats a pair",
        seed=seed,
        chance=0.0,
        better="lower",
        kind="differences",
        general=False,
    )
    if not found:
        gain = Estimate.not_estimable("no two neighbours of the file can be read together", n=0, unit="nats a pair")
    return SwapTest(gain, paired_sign_flip(gains, seed=seed), tuple(found), fits.count(False))
