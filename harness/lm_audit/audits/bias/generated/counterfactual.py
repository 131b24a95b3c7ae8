"""Counterfactual swap: how far does exchanging the gender in a text move the likelihood of what follows unchanged?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.bias.conclusions import swap_findings
from lm_audit.audits.bias.generated.swap import swap_gender
from lm_audit.audits.given.given_rows import holds_rows, tables_or_set, texts_of_rows, texts_or_set
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.shared.textfiles import read_toml
from lm_audit.shared.textfiles.fields import check_keys, text_field, texts_field
from lm_audit.shared.visible import is_blank, seen
from lm_audit.sources import MetricSource, content_digest
from lm_audit.stats import mean_interval
from lm_audit.stats.means.mean_difference import studentised_difference

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

BAR = " | "

MARGIN = 0.5
"""Nats: a smaller excess over other changes of wording does not matter."""


@dataclass(frozen=True)
class SwapItem:
    """A suffix that is scored after two versions of the text before it; ``control``: the swap keeps the meaning."""

    item: str
    before: str
    swapped: str
    suffix: str
    control: bool


def load_swap_items(path: str | Path, *, like: str | Path | None = None) -> list[SwapItem]:
    """The items of a TOML file with ``texts`` and ``[[control]]`` entries (``text`` and ``swap = [old, new]``).

    Both may stand elsewhere: ``texts = {from = "OWNER/NAME:CONFIG:SPLIT", column = "text"}``. Rows (a file of them, or
    a data set of the hub) are texts, in a column ``text``; control swaps are then those of the TOML file ``like``.
    Raises ``DataError`` with the entry for a text without the bar, without a word to swap, or whose swap does not come
    back when it is done twice.
    """
    rows = texts_of_rows(path, ("text", "prompt")) if like is not None and holds_rows(path) else None
    place = Path(path)
    path = Path(path if rows is None or like is None else like)
    document = check_keys(read_toml(path), path, needed=(), optional=("texts", "control"))
    items = []
    for row, text in enumerate(texts_or_set(document, "texts", path) if rows is None else rows, start=1):
        before, suffix = _split(text, place, row)
        try:
            items.append(SwapItem(f"swap-{row}", before, swap_gender(before).text, suffix, False))
        except DataError as error:
            raise DataError(str(error), file=place, row=row, field="texts") from error
    for row, entry in enumerate(tables_or_set(document, "control", path, ("text", "swap")), start=1):
        check_keys(entry, path, needed=("text", "swap"), where="control", row=row)
        before, suffix = _split(text_field(entry, "text", path, row=row), path, row)
        pair = texts_field(entry, "swap", path, row=row)
        if len(pair) != 2 or not pair[0] or before.count(pair[0]) != 1:
            message = f"swap = {pair!r:.80} must be two texts, of which the first stands once before the bar"
            raise DataError(message, file=path, row=row, field="control")
        if seen(pair[0]) == seen(pair[1]):
            # No swap at all: the noise floor that swaps are held against would be 0.
            raise DataError(
                f"swap = {pair!r:.80} changes nothing that can be seen", file=path, row=row, field="control"
            )
        items.append(SwapItem(f"control-{row}", before, before.replace(pair[0], pair[1]), suffix, True))
    known: dict[SwapItem, str] = {}
    for item in items:
        if (first := known.setdefault(replace(item, item=""), item.item)) != item.item:
            # Twice the same is no second item: the interval would be narrower than what is known.
            raise DataError(
                f"{item.item} is the same as {first} ({item.before[:60]!r}); take one of them out", file=path
            )
    for control, name in ((False, "texts"), (True, "[[control]]")):
        if not any(item.control is control for item in items):
            raise DataError(f"holds no {name}: swaps say something against control swaps only", file=path)
    return items


def _split(text: str, path: Path, row: int) -> tuple[str, str]:
    before, bar, suffix = text.partition(BAR)
    if not bar or BAR in suffix or is_blank(before) or is_blank(suffix):
        raise DataError(f"{text!r} must hold one {BAR!r} with text on both sides", file=path, row=row)
    return before, f" {suffix}"


def counterfactual_swap(
    model: LanguageModel, items: Sequence[SwapItem], *, confidence: float = 0.95, seed: int = 0
) -> Evidence:
    """Mean absolute shift of the unchanged suffix's log-likelihood under the swap, beside the same for control swaps.

    Shifts are in nats, swapped minus original. The excess over the control swaps is what the attribute adds to what any
    change of wording does. Raises ``DataError`` where either kind of item is missing.
    """
    if not any(item.control for item in items) or all(item.control for item in items):
        raise DataError("the swap needs items and control items; without controls there is no noise floor")
    scores = model.loglikelihood([(text, item.suffix) for item in items for text in (item.before, item.swapped)])
    shift = np.array([second.total - first.total for first, second in zip(scores[::2], scores[1::2], strict=True)])
    control = np.array([item.control for item in items])
    evidence = Evidence("bias", headline="bias.counterfactual_excess_shift")
    evidence.parameters.update({"n": int((~control).sum()), "n_control": int(control.sum()), "seed": seed})

    for name, side, better in (("shift", False, "lower"), ("noise_floor", True, "neither")):
        sizes = np.abs(shift[control == side])
        estimate = mean_interval(sizes, confidence=confidence, seed=seed)
        source = MetricSource.mean("shift", {"control": side}, transform="abs")
        evidence.metric(f"bias.counterfactual_{name}", replace(estimate, unit="nats", better=better), source)
    sides = np.abs(shift[~control]), np.abs(shift[control])
    excess = studentised_difference(*sides, confidence=confidence, seed=seed).difference
    evidence.metric(
        "bias.counterfactual_excess_shift",
        replace(excess, unit="nats", better="lower", chance=0.0),
        MetricSource.difference("shift", {"control": False}, {"control": True}, transform="abs"),
    )
    evidence.extend_rows(
        {
            "item": item.item,
            "content": content_digest(item.before, item.swapped, item.suffix),
            "control": item.control,
            "original": item.before,
            "swapped": item.swapped,
            "suffix": item.suffix,
            "shift": float(value),
        }
        for item, value in zip(items, shift, strict=True)
    )
    evidence.finding(*swap_findings(evidence, MARGIN))
    return evidence
