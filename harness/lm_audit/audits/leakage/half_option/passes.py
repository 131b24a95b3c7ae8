"""Probes all conditions of a benchmark, a few questions a pass, and hands on every row as soon as it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.audits.leakage.half_option.cuts import Cut
from lm_audit.audits.leakage.half_option.probing import MEASURED, Rule, probe_chunks
from lm_audit.audits.leakage.half_option.variants import BASELINES, Variant, exclude, strangers, variants_of
from lm_audit.audits.leakage.items.item import LETTERS, Item, full_text
from lm_audit.audits.leakage.items.style import sorted_items

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel

Rows = Iterable[Mapping[str, Any]]
OnRows = Callable[[Rows], Any]

QUESTIONS_A_PASS = 8


def usable_items(model: LanguageModel, items: Sequence[Item], opening: str = "") -> tuple[list[Item], dict[str, str]]:
    """The items that fit the model and have no equal options, and why the others do not."""
    return exclude(items, fitting(model, items, opening))


def fitting(model: LanguageModel, items: Sequence[Item], opening: str = "") -> list[bool]:
    """Whether each item's whole text, with some room for a BOS and other cuts, fits the model's context window."""
    window = model.context_window
    if window is None or not items:
        return [True] * len(items)
    encoded = model.tokenizer([opening + full_text(item) for item in items], add_special_tokens=False)["input_ids"]
    return [len(ids) + 8 <= window for ids in encoded]


def measure_conditions(
    model: LanguageModel,
    items: Sequence[Item],
    *,
    orders: int,
    rule: Rule = "bytes",
    cut: Cut = "token",
    opening: str = "",
    baselines: Sequence[str] = BASELINES,
    suffixes: bool = True,
    unmoved: bool = False,
    seed: int,
    on_rows: OnRows | None = None,
) -> pd.DataFrame:
    """A table with one row an item, condition and option; ``base`` numbers the items, ``base_option`` their options.

    Columns besides those of :func:`probe`: ``condition`` ("original", "shuffled-1", ..., "other_question",
    "other_item"), ``base``, ``base_option``. With ``unmoved`` an item that cannot be shuffled stands as it is under
    "shuffled-1" too. ``on_rows`` is given every pass's rows when they are measured.
    """
    import pandas as pd

    borrowed = strangers(items, seed=seed)
    rows: list[dict[str, Any]] = []

    def variants(number: int) -> list[Variant]:
        return variants_of(
            items, number, orders=orders, strangers=borrowed, seed=seed, baselines=baselines, unmoved=unmoved
        )

    for begin in range(0, len(items), QUESTIONS_A_PASS):
        numbers = range(begin, min(begin + QUESTIONS_A_PASS, len(items)))
        tried = [v for n in numbers for v in variants(n)]
        fit = fitting(model, [variant.item for variant in tried], opening)
        kept = [variant for variant, fits in zip(tried, fit, strict=True) if fits]
        new = list(_measured(model, kept, items, rule, cut, opening, suffixes))
        if on_rows is not None:
            on_rows(_recorded(new, items))
        rows += new
    return pd.DataFrame(rows)


def _measured(
    model: LanguageModel,
    variants: Sequence[Variant],
    items: Sequence[Item],
    rule: Rule,
    cut: Cut,
    opening: str,
    suffixes: bool,
) -> Iterator[dict[str, Any]]:
    texts = [variant.item for variant in variants]
    [rows] = probe_chunks(model, texts, rule=rule, cut=cut, opening=opening, suffixes=suffixes, chunk=len(texts))
    remaining = iter(rows)
    for variant in variants:
        own = [next(remaining) for _ in variant.item.options]
        for slot, option in zip(variant.slots, variant.options, strict=True):
            base = items[variant.base]
            place = {"condition": variant.condition, "base": variant.base, "base_option": option}
            yield {**own[slot], "item_id": base.id, "file": base.file, **place}


_KEPT = ("condition", "file", "predicted", *MEASURED, "suffix")


def _recorded(rows: Sequence[Mapping[str, Any]], items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """The rows as the run store keeps them, with ``logprob_per_byte`` and ``sorted`` (style of the published order)."""
    in_order = sorted_items(items)
    for row in rows:
        option = LETTERS[row["base_option"]]
        name = f"{row['file']}:{row['item_id']}:{option}:{row['condition']}"
        per_byte = (
            None
            if not row["suffix_bytes"] or row["suffix_logprob"] is None
            else row["suffix_logprob"] / row["suffix_bytes"]
        )
        derived = {"logprob_per_byte": per_byte, "sorted": in_order[row["base"]]}
        base = items[row["base"]]
        named = {"item": name, "content": base.content, "question": base.key}
        yield {**named, **{key: row[key] for key in _KEPT}, **derived}
