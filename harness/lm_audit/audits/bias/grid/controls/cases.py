"""The controls of the preference grid: a planted preference that must be found, names that mean nothing.

Both run :func:`measure_grid`, :func:`all_contrasts` and :func:`axis_evidence`, the path of every number of the grid, on
prompts with invented names. What must come out is known from elsewhere: from plain forward passes of the model's module
(:mod:`lm_audit.audits.bias.grid.controls.plain_scoring`), cell by cell. The positive control's model has a preference
of known size written into its head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.bias.grid.contrasts import all_contrasts
from lm_audit.audits.bias.grid.controls.plain_scoring import plain_texts
from lm_audit.audits.bias.grid.controls.planted import NoncePrompts, decisions, nonce_prompts, plant_preference
from lm_audit.audits.bias.grid.controls.verdict import (
    FALSE_ALARM,
    MARGIN,
    SIDES,
    chance_levels,
    clear,
    judged,
    named,
    wrong_effects,
)
from lm_audit.audits.bias.grid.lexicon.parts import Axis, PreferenceSet, WordPair
from lm_audit.audits.bias.grid.measurement import Floats, measure_grid
from lm_audit.audits.bias.grid.preference import axis_evidence
from lm_audit.audits.second_opinion import held_by_its_rows, misreported
from lm_audit.errors import UsageError
from lm_audit.evidence import Control, Evidence
from lm_audit.models.checks.agreement import nats_a_token
from lm_audit.sources.record import Where

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

TEMPLATES, PAIRS = 6, 6
"""Of the prompts and word pairs at hand so many are used: enough for an interval, few enough for plain passes."""

DRAWS = 40
"""Draws of names at most, until the planted preference is clear."""


def control_evidence(
    model: LanguageModel, templates: Sequence[str], pairs: Sequence[WordPair], *, size: float, seed: int = 0
) -> Evidence:
    """The control with a preference of ``size`` nats planted (positive), or with none (``size`` 0, negative).

    What decides is :func:`~lm_audit.audits.bias.grid.controls.verdict.judged`; ``benchmarks/controls`` says how often
    it is right, ``tests/audits/bias/test_bias_mutations.py`` what makes it fail.
    """
    if size:
        prompts, (asked, chosen, known) = _clearly_planted(model, templates, pairs, size, seed)
    else:
        prompts = nonce_prompts(templates[:TEMPLATES], seed=seed)
        asked, chosen, known = _plain_choice(model, prompts, pairs)
    evidence, cells = _measured(asked, prompts, chosen, seed)
    faults = judged(cells, known, evidence.metrics, planted=bool(size), limit=8 * nats_a_token(asked), seed=seed)
    grid = len(prompts.first) * len(chosen)
    counts: list[tuple[Where, int]] = [({"group": side}, grid) for side in SIDES]
    faults += _names_used_twice(templates, prompts)
    faults += misreported(evidence, chances=chance_levels(cells), counts=counts)
    faults += _told_otherwise(evidence) if size else []
    shown = [row for figure in evidence.figures if figure.name == "contrast_table" for row in figure.data["rows"]]
    faults += wrong_effects(shown[0], cells) if shown else ["no table of contrasts is shown"]
    contrast = evidence.metrics[named("bias.contrast")]
    told = f"contrast of {known.mean(axis=(1, 2))[0] - known.mean(axis=(1, 2))[1]:.3f} nats by plain forward passes"
    if size:
        expected = f"{size:g} nats planted: a {told}, in every cell alike, found above 0"
    else:
        expected = f"a {told}, in every cell alike, and names not told apart (p >= {FALSE_ALARM})"
    result = Evidence("bias", headline="bias.control_contrast", rows=evidence.rows)
    source = evidence.sources[named("bias.contrast")]
    result.metric("bias.control_contrast", replace(contrast, better="target:0"), source)
    result.parameters.update({"planted_nats": size, "seed": seed, "names": 2 * TEMPLATES, "pairs": len(chosen)})
    observed = f"{contrast.value:.3f} nats" if contrast.value is not None else "no contrast"
    result.control = Control("positive" if size else "negative", not faults, expected, "; ".join([observed, *faults]))
    return held_by_its_rows(result, counts=counts)


def _told_otherwise(evidence: Evidence) -> list[str]:
    """What finding and note say of the planted preference, where it is not that the first side is favoured."""
    first, second = (repr(side) for side in SIDES)
    notes = [note for note in evidence.notes if note.startswith(f"{SIDES[0]} - {SIDES[1]}:")]
    said = [(finding.statement, f" favours {first} against {second} ") for finding in evidence.findings]
    said += [(finding.amount, f" after {first} as after {second}") for finding in evidence.findings]
    said += [(note, f" favours {first} against {second}.") for note in notes]
    wrong = [f"of the planted preference it is said: {words!r}" for words, wanted in said if wanted not in words]
    return wrong if notes and evidence.findings else [*wrong, "nothing is said of the planted preference"]


def _names_used_twice(templates: Sequence[str], prompts: NoncePrompts) -> list[str]:
    """Names are drawn once each, so that what one of them does is not taken for what templates have in common."""
    names = []
    for template, *sides in zip(templates, prompts.first, prompts.second, strict=False):
        before, _, after = template.partition("{name}")
        names += [side.removeprefix(before).removesuffix(after) for side in sides]
    twice = len(names) - len(set(names))
    return [f"{twice} of {len(names)} names are used a second time"] if twice else []


Choice = tuple["LanguageModel", list[WordPair], Floats]


def _plain_choice(model: LanguageModel, prompts: NoncePrompts, pairs: Sequence[WordPair]) -> Choice:
    """The first pairs, and their log-odds by plain forward passes."""
    _require(len(pairs), prompts)
    chosen = list(pairs[:PAIRS])
    return model, chosen, _plain(model, prompts, chosen)


def _planted(model: LanguageModel, prompts: NoncePrompts, pairs: Sequence[WordPair], size: float) -> Choice:
    """A model with the preference planted, and the pairs in which whole words carry it best, by plain forward passes.

    Where words are one token long every pair carries all of it. Where they are several (letters, at worst), the tokens
    after the one that is planted move too, by amounts that nobody chose.
    """
    usable = decisions(model, pairs)
    _require(len(usable), prompts)
    asked = plant_preference(model, prompts, usable, size)
    chosen = [pair for pair, _ in usable[:PAIRS]]
    known = _plain(asked, prompts, chosen)
    carried = (known[0] - known[1]).mean(axis=0)
    if len(usable) > PAIRS and carried.min() < size / 2:
        chosen = [pair for pair, _ in usable]
        known = np.concatenate([known, _plain(asked, prompts, chosen[PAIRS:])], axis=2)
        best = np.sort(np.argsort(-(known[0] - known[1]).mean(axis=0), kind="stable")[:PAIRS])
        chosen, known = [chosen[i] for i in best], known[:, :, best]
    return asked, chosen, known


def _clearly_planted(
    model: LanguageModel, templates: Sequence[str], pairs: Sequence[WordPair], size: float, seed: int
) -> tuple[NoncePrompts, Choice]:
    """Names for which plain forward passes show the planted preference in every template and every pair.

    Most first names do where words are one token long. Where they do not, names are drawn again: what the audit has to
    find must be there.
    """
    for attempt in range(DRAWS):
        prompts = nonce_prompts(templates[:TEMPLATES], seed=seed + 1009 * attempt)
        choice = _planted(model, prompts, pairs, size)
        if clear(choice[2][0] - choice[2][1]):
            break
    return prompts, choice


def _require(usable: int, prompts: NoncePrompts) -> None:
    if usable < PAIRS or len(prompts.first) < TEMPLATES:
        raise UsageError(f"the control needs {PAIRS} usable word pairs and {TEMPLATES} templates, got {usable} pairs")


def _measured(
    model: LanguageModel, prompts: NoncePrompts, pairs: Sequence[WordPair], seed: int
) -> tuple[Evidence, Floats]:
    """The grid's own evidence on these prompts, and the log-odds in it of shape (sides, templates, pairs)."""
    texts = {
        (f"{number} {{group}}", side): text
        for number in range(len(prompts.first))
        for side, text in zip(SIDES, (prompts.first[number], prompts.second[number]), strict=True)
    }
    grid = PreferenceSet(
        language="en",
        separator=" ",
        templates=tuple(f"{number} {{group}}" for number in range(len(prompts.first))),
        axes=(Axis.of("names", (SIDES[1], SIDES[0])),),
        pairs=tuple(pairs),
        neutral=SIDES[1],
    )
    measured = measure_grid(model, grid, prompt_of=lambda template, group: texts[template, group])
    contrasts = all_contrasts(measured, margin=MARGIN, confidence=0.95, seed=seed)
    evidence = axis_evidence(measured, contrasts, grid.axes[0], seed=seed)
    places = {(row["group"], row["template"], row["pair"]): row["log_odds"] for row in evidence.rows}
    cells = [
        [[places.get((side, template, pair.label), np.nan) for pair in pairs] for template in grid.templates]
        for side in SIDES
    ]
    return evidence, np.array(cells, dtype=np.float64)


def _plain(model: LanguageModel, prompts: NoncePrompts, pairs: Sequence[WordPair]) -> Floats:
    """The same log-odds from plain forward passes."""
    words = [word for pair in pairs for word in (pair.positive, pair.negative)]
    asked = [(prompt, f" {word}") for side in (prompts.first, prompts.second) for prompt in side for word in words]
    totals = np.array([float(scores.sum()) for scores in plain_texts(model, asked)])
    both = totals.reshape(2, len(prompts.first), len(pairs), 2)
    return np.asarray(both[..., 0] - both[..., 1], dtype=np.float64)
