"""Exact exposure: a secret's rank among all candidates for its last characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.audits.privacy.data.families import FAMILIES
from lm_audit.errors import UsageError
from lm_audit.stats import exposure_exact

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring import Bos

MOST_CANDIDATES = 50_000


def exact_exposure(
    model: LanguageModel, canaries: Sequence[Canary], *, positions: int = 2, bos: Bos = "default"
) -> pd.DataFrame:
    """One row a canary: ``rank`` (1 = likeliest, ties against it) of its true text among all those that differ in the
    last ``positions`` characters of the secret, ``space``, ``exposure_exact`` and its ``cap``, log2 of space (bits).

    All candidates of one canary share their first characters, which the engine reads once. Raises ``UsageError`` for a
    family without independent characters at the end of its secret, or more than 50,000 candidates a canary.
    """
    import pandas as pd

    spaces = [candidates(canary, positions) for canary in canaries]
    requests = [(head, end) for head, ends in spaces for end in ends]
    found = model.loglikelihood(requests, bos=bos)
    totals = [score.total for score in found]
    rows, start = [], 0
    for canary, (_, ends) in zip(canaries, spaces, strict=True):
        rows.append(_row(canary, np.array(totals[start : start + len(ends)])))
        start += len(ends)
    return pd.DataFrame(rows)


def is_enumerable(canary: Canary) -> bool:
    """Whether its family says which characters its secret ends in; a canary that somebody wrote says nothing."""
    family = FAMILIES.get(canary.family)
    return family is not None and bool(family.alphabet)


def candidates(canary: Canary, positions: int) -> tuple[str, list[str]]:
    """(the carrier, every candidate for the rest of the text); the true one comes first."""
    if not is_enumerable(canary):
        raise UsageError(f"family {canary.family!r} has no alphabet to enumerate; exact exposure needs one")
    family = FAMILIES[canary.family]
    if not 1 <= positions <= len(canary.secret) or len(family.alphabet) ** positions > MOST_CANDIDATES:
        raise UsageError(f"positions={positions} gives {len(family.alphabet)}^{positions} candidates; at most 50,000")
    start, end = canary.secret_span
    head, known, true = canary.text[:start], canary.text[start : end - positions], canary.text[end - positions : end]
    others = ("".join(letters) for letters in product(family.alphabet, repeat=positions))
    endings = [true, *(other for other in others if other != true)]
    # The whole secret is the target, so that a tokenizer that merges characters cannot leave part of it unscored.
    return head, [known + ending + canary.text[end:] for ending in endings]


def _row(canary: Canary, totals: np.ndarray) -> dict[str, object]:
    rank = 1 + int((totals[1:] >= totals[0]).sum())
    bits = exposure_exact(rank, len(totals)).value
    cap = float(np.log2(len(totals)))
    return {"canary_id": canary.id, "rank": rank, "space": len(totals), "exposure_exact": bits, "cap": cap}
