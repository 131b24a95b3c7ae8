"""Completion of the second half: does greedy decoding write the rest of the option out, word for word?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import Kind, clusters_of, mean_of, of_these_files, record_these_files
from lm_audit.audits.leakage.evidence.conclusions import completion_findings
from lm_audit.audits.leakage.evidence.describing import describe, note_unreachable
from lm_audit.audits.leakage.evidence.figures import distribution, ending, forest, memorised_table, visible
from lm_audit.audits.leakage.half_option.cuts import Cut, Probe, cut_items
from lm_audit.audits.leakage.half_option.passes import OnRows, usable_items
from lm_audit.audits.leakage.half_option.similarity import edit_similarity, rouge_l
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, OTHER_ITEM, Variant, strangers, variants_of
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import LETTERS, Item
from lm_audit.audits.leakage.signs import paired_sign_flip
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

MEASURES = {"exact": "share of options", "rouge_l": "ROUGE-L F1", "edit_similarity": "edit similarity"}
ALIKE = 0.75
"""From this similarity on a completion counts as a near copy (Xu et al. 2024)."""

QUESTIONS_A_PASS = 8


def completions(
    model: LanguageModel,
    benchmark: Benchmark,
    *,
    cut: Cut = "token",
    opening: str = "",
    seed: int = 0,
    on_rows: OnRows | None = None,
) -> Evidence:
    """Greedy completions of every option's second half, in its place and after another item (what language gives).

    A completion is cut at the line's end and at the suffix's length in characters, and compared with the suffix in
    characters of any script: exact match, ROUGE-L F1, edit similarity. A thought that the model opens there is no part
    of the completion; where nothing follows it, the option is left out and counted in a note. ``on_rows`` gets item
    rows as they are measured.
    """
    items, excluded = usable_items(model, benchmark.items, opening)
    if not items:
        raise DataError(f"no item can be used: {sorted(set(excluded.values()))}", file=benchmark.name)
    rows: list[dict[str, Any]] = []
    borrowed = strangers(items, seed=seed)
    for begin in range(0, len(items), QUESTIONS_A_PASS):
        numbers = range(begin, min(begin + QUESTIONS_A_PASS, len(items)))
        variants = [
            v
            for n in numbers
            for v in variants_of(items, n, orders=0, strangers=borrowed, seed=seed, baselines=(OTHER_ITEM,))
        ]
        new = _completed(model, items, variants, cut, opening)
        if on_rows is not None:
            on_rows(new)
        rows += new
    evidence = completion_evidence(rows, items, benchmark, seed)
    right = [len(row["truth"]) for row in rows if row["exact"] and row["condition"] == ORIGINAL]
    evidence.finding(*completion_findings(evidence, benchmark.name, right))
    describe(evidence, benchmark, excluded, {"cut": cut, "mode": "template" if opening else "raw"})
    note_unreachable(evidence)
    unanswered = sum(row["wrote"] is None for row in rows)
    if unanswered:
        evidence.notes.append(
            f"Warning: {unanswered} of {len(rows)} completions are a thought whose answer never came. They are left "
            "out: a thought is no continuation of the option."
        )
    evidence.rows = [] if on_rows is not None else rows
    return evidence


def _completed(
    model: LanguageModel, items: Sequence[Item], variants: Sequence[Variant], cut: Cut, opening: str
) -> list[dict[str, Any]]:
    probes = iter(cut_items([v.item for v in variants], model.text_splitter, model.tokenizer, cut, opening))
    wanted: list[tuple[Variant, int, Probe]] = []
    for variant in variants:
        own = [next(probes) for _ in variant.item.options]
        wanted += [(variant, option, own[slot]) for slot, option in zip(variant.slots, variant.options, strict=True)]
    written = _written(model, [p for _, _, p in wanted])
    return [_row(items[v.base], v, option, p, said) for (v, option, p), said in zip(wanted, written, strict=True)]


@dataclass(frozen=True)
class Written:
    """What a model wrote behind a cut, up to its line's end: ``text`` is ``None`` where it ended inside a thought."""

    text: str | None
    thought: str | None


def _written(model: LanguageModel, probes: Sequence[Probe]) -> list[Written]:
    from lm_audit.models.scoring.requests import default_bos

    bos = list(default_bos(model.tokenizer))
    prompts = [bos + p.context.tolist() for p in probes]
    longest = max(len(p.whole) - len(p.context) for p in probes)
    # The suffix may be written with more tokens than the text's own; what is too long is cut below.
    generated = model.generate(prompts, max_new_tokens=longest + 2, stop=("\n",))
    return [
        Written(None if g.answer is None else trimmed(g.answer, len(p.suffix)), g.thought)
        for g, p in zip(generated, probes, strict=True)
    ]


def trimmed(text: str, length: int) -> str:
    """The first line of a completion, at most so many characters, without half a character at its end."""
    return text.split("\n")[0][:length].rstrip("\ufffd")


def _row(item: Item, variant: Variant, option: int, p: Probe, written: Written) -> dict[str, Any]:
    letter, text = LETTERS[option], written.text
    rouge = None if text is None else rouge_l(text, p.suffix)
    edit = None if text is None else edit_similarity(text, p.suffix)
    return {
        "item": f"{item.key}:{letter}:{variant.condition}",
        "content": item.content,
        "question": item.key,
        "condition": variant.condition,
        "file": item.file,
        "base": variant.base,
        "wrote": text,
        "truth": p.suffix,
        "prefix": ending(p.prefix),
        "thought": written.thought,
        "exact": None if text is None else text == p.suffix,
        "rouge_l": rouge,
        "edit_similarity": edit,
        "near_copy": None if rouge is None or edit is None else rouge > ALIKE or edit > ALIKE,
    }


def completion_evidence(
    rows: Sequence[dict[str, Any]], items: Sequence[Item], benchmark: Benchmark, seed: int = 0
) -> Evidence:
    """The metrics and figures of the completions' rows, of these ``items`` of the ``benchmark``."""
    import pandas as pd

    evidence = Evidence("leakage", headline="leakage.completion.edit_similarity")
    table = pd.DataFrame(rows)
    files = [item.file for item in items]
    clusters, means = clusters_of(files), {}
    conditions = [ORIGINAL, OTHER_ITEM]
    for measure, unit in {**MEASURES, "near_copy": "share of options"}.items():
        by_question = table.assign(value=table[measure].astype(float)).pivot_table(
            index="base", columns="condition", values="value", aggfunc="mean"
        )
        by_question = by_question.reindex(index=range(len(items)), columns=conditions)
        own, other = by_question[ORIGINAL].to_numpy(), by_question[OTHER_ITEM].to_numpy()
        kind: Kind = "counts" if measure in ("exact", "near_copy") else "values"
        common: dict[str, Any] = {"unit": unit, "seed": seed, "kind": kind, "limits": (0.0, 1.0), "unseen": (0.0, 1.0)}
        baseline = mean_of(other, files, **common, better="neither")
        name, gain = f"leakage.completion.{measure}", own - other
        sources = [
            MetricSource.mean(measure, {"condition": condition}, unit=("question",), clusters=clusters)
            for condition in conditions
        ]
        evidence.metric(name, mean_of(own, files, **common, chance=baseline.value, better="lower"), sources[0])
        paired = bool((table["condition"] == OTHER_ITEM).any())
        evidence.metric(f"{name}.baseline", baseline, sources[1] if paired else None)
        above = mean_of(
            gain, files, unit=unit, seed=seed, chance=0.0, better="lower", kind="differences", limits=(-1.0, 1.0)
        )
        first, second = ({"condition": condition} for condition in conditions)
        source = MetricSource.paired_difference(measure, ("question",), first, second, clusters=clusters)
        evidence.metric(f"{name}.above_baseline", above, source if paired else None)
        if measure == "exact":
            own_files = of_these_files(
                gain, files, benchmark, unit=unit, seed=seed, chance=0.0, better="lower", kind="differences",
                limits=(-1.0, 1.0),
            )  # fmt: skip
            record_these_files(evidence, f"{name}.above_baseline", own_files, source if paired else None)
        evidence.metric(f"{name}.above_baseline.p", paired_sign_flip(gain[np.isfinite(gain)], seed=seed))
        means[measure] = (own, other)
    _draw(evidence, rows, means)
    return evidence


def _draw(evidence: Evidence, rows: Sequence[dict[str, Any]], means: dict[str, Any]) -> None:
    shown = {m: evidence.metrics[f"leakage.completion.{m}"] for m in means}
    shown |= {f"{m} (baseline)": evidence.metrics[f"leakage.completion.{m}.baseline"] for m in means}
    own, other = means["edit_similarity"]
    chance = evidence.metrics["leakage.completion.edit_similarity"].chance
    evidence.figures += [
        forest(
            "completion",
            "Completions of the second half",
            dict(sorted(shown.items())),
            "share or similarity",
            None,
            "Each measure beside its baseline: the same option after another item.",
        ),
        distribution(
            "completion_distribution",
            "Edit similarity of the questions",
            {"original": own, "baseline": other},
            "edit similarity, mean over options",
            chance,
            "Dashed: mean of the baseline.",
        ),
        memorised_table(_most_alike(rows), "Longest completions that are most like the truth."),
    ]


def _most_alike(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    baseline = {(r["base"], r["item"].rsplit(":", 2)[1]): r for r in rows if r["condition"] == OTHER_ITEM}
    found = []
    for row in rows:
        other = baseline.get((row["base"], row["item"].rsplit(":", 2)[1]))
        pair = (row, other) if other is not None else (row,)
        if row["condition"] == "original" and other is not None and all(r["wrote"] is not None for r in pair):
            gain = row["edit_similarity"] - other["edit_similarity"]
            found.append((gain * len(row["truth"]), gain, row))
    found.sort(key=lambda entry: -entry[0])
    return [
        {"item": row["item"].rsplit(":", 1)[0], "gain": round(gain, 3)}
        | {k: visible(row[k]) for k in ("prefix", "wrote", "truth")}
        for _, gain, row in found[:15]
    ]
