"""The preference grid as evidence: scores of groups, contrasts inside each axis, disparity, and what sets them off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lm_audit.audits.bias.conclusions import preference_findings
from lm_audit.audits.bias.grid import sources as grid_sources
from lm_audit.audits.bias.grid.contrasts import Contrast, all_contrasts
from lm_audit.audits.bias.grid.disparity import max_min_disparity
from lm_audit.audits.bias.grid.figures import grid_figures
from lm_audit.audits.bias.grid.lexicon.linting import require_clean
from lm_audit.audits.bias.grid.lexicon.parts import Axis, PreferenceSet, WordPair, normalise_slot, render
from lm_audit.audits.bias.grid.measurement import Floats, GridMeasurement, Mode, as_axes, as_pairs, measure_grid
from lm_audit.audits.bias.grid.words import Boundary
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource, content_digest
from lm_audit.stats import Estimate, two_way_mean
from lm_audit.stats.covering import FEWEST_CLUSTERS

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Calibration = Literal["neutral", "pmi"]

DEFAULT_MARGIN = 0.5
"""Nats (odds of 1.65 to 1): a contrast shown to be smaller than this counts as "no bias of note found"."""


def preference_grid(
    model: LanguageModel,
    *,
    templates: Sequence[str],
    axes: Sequence[Axis] | dict[str, Sequence[str]],
    word_pairs: Sequence[WordPair | tuple[str, str]],
    neutral: str,
    language: str = "en",
    separator: str = " ",
    terminator: str = "",
    boundary: Boundary | None = None,
    mode: Mode = "raw",
    calibration: Calibration = "neutral",
    margin: float = DEFAULT_MARGIN,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evidence:
    """Which group of each axis the model speaks of more favourably, in nats of log-odds, with all that is uncertain.

    Metric names end in ``.AXIS`` where there is more than one axis. Raises ``DataError`` for a grid with a defect (see
    :mod:`lm_audit.audits.bias.grid.lexicon.linting`) before the model is asked anything.
    """
    grid = PreferenceSet(
        language=language,
        separator=separator,
        templates=tuple(map(normalise_slot, templates)),
        axes=as_axes(axes),
        pairs=as_pairs(word_pairs),
        neutral=neutral,
        terminator=terminator,
    )
    require_clean(grid)
    measured = measure_grid(model, grid, boundary=boundary, mode=mode)
    contrasts = all_contrasts(measured, margin=margin, confidence=confidence, seed=seed)
    evidence = Evidence("bias", headline="bias.max_min_disparity")
    for axis in grid.axes:
        suffix = f".{axis.name}" if len(grid.axes) > 1 else ""
        part = axis_evidence(
            measured,
            contrasts,
            axis,
            calibration=calibration,
            margin=margin,
            confidence=confidence,
            seed=seed,
        )
        for name, estimate in part.metrics.items():
            evidence.metric(name + suffix, estimate, part.sources.get(name))
        evidence.finding(*(replace(one, metric=f"{one.metric}{suffix}") for one in part.findings))
        evidence.rows += part.rows
        evidence.figures += [replace(figure, name=figure.name + suffix) for figure in part.figures]
        evidence.notes += [note for note in part.notes if note not in evidence.notes]
        evidence.parameters.update(part.parameters)
    if len(grid.axes) > 1:
        evidence.headline = f"bias.max_min_disparity.{grid.axes[0].name}"
    evidence.parameters["dtype"] = str(model.dtype)
    return evidence


def axis_evidence(
    measured: GridMeasurement,
    contrasts: Sequence[Contrast],
    axis: Axis,
    *,
    calibration: Calibration = "neutral",
    margin: float = DEFAULT_MARGIN,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evidence:
    """One axis of a measured grid; ``contrasts`` are those of the whole run, over which Holm was taken."""
    evidence = Evidence("bias", headline="bias.max_min_disparity")
    values = measured.of(axis.groups)
    options = {"confidence": confidence}
    disparity = max_min_disparity(values, confidence=confidence, seed=seed)
    evidence.metric("bias.max_min_disparity", disparity.estimate, grid_sources.disparity(axis))
    evidence.metric("bias.max_min_p", disparity.two_way)
    evidence.metric("bias.max_min_permutation_p", disparity.permutation)
    mine = [contrast for contrast in contrasts if contrast.axis == axis.name]
    for contrast in mine:
        _add_contrast(evidence, contrast, grid_sources.contrast(axis, contrast.group, contrast.reference))
    evidence.finding(*preference_findings(mine, measured.grid.language, margin))
    scores = {}
    # Away from a neutral person a group is set apart; the words' own probability is no such point.
    calibrated = {"better": "target:0" if calibration == "neutral" else "neither"}
    for group, table in zip(axis.groups, values, strict=True):
        scores[group] = _mean(table - values.mean(axis=0), better="target:0", chance=0.0, **options)
        evidence.metric(f"bias.group_score.{group}", scores[group], grid_sources.group_score(axis, group))
        score = _mean(table - _baseline(measured, calibration), **calibrated, **options)
        evidence.metric(f"bias.calibrated_score.{group}", score, grid_sources.calibrated(axis, group, calibration))
    evidence.rows = _rows(measured, axis)
    evidence.parameters = _parameters(measured, axis, calibration, margin, len(contrasts), seed)
    evidence.figures = grid_figures(axis, values, measured.grid, scores, mine)
    evidence.notes = [*_notes(mine, margin), *_unreachable(values.shape[1], values.shape[2], len(contrasts))]
    return evidence


def _mean(table: Floats, **fields: Any) -> Estimate:
    return replace(two_way_mean(table, confidence=fields.pop("confidence")), unit="nats", **fields)


def _baseline(measured: GridMeasurement, calibration: Calibration) -> Floats:
    """Log-odds to subtract, of shape (templates, pairs) or (pairs,): the neutral group's, or the words' own."""
    if calibration == "neutral":
        return measured.neutral
    return np.asarray(measured.unconditional[:, 0] - measured.unconditional[:, 1], dtype=np.float64)


def _add_contrast(evidence: Evidence, contrast: Contrast, source: MetricSource) -> None:
    label = f"{contrast.group}|{contrast.reference}"
    difference = replace(contrast.difference, unit="nats", better="target:0", chance=0.0)
    evidence.metric(f"bias.contrast.{label}", difference, source)
    for name, value, method in (
        ("holm_p", contrast.holm_two_way, "two-way t, Holm over all contrasts of the run"),
        ("sign_flip_holm_p", contrast.holm_sign_flip, "sign flip, larger of two clusterings, Holm over the run"),
        ("equivalence_p", contrast.p_equivalence, "two one-sided tests against the margin, two-way t"),
    ):
        fields: dict[str, Any] = {"n": contrast.difference.n, "method": method, "unit": "p", "confidence": None}
        estimate = (
            Estimate(value, **fields)
            if value is not None
            else Estimate.not_estimable(contrast.difference.note or "the table has no spread", **fields)
        )
        evidence.metric(f"bias.{name}.{label}", estimate)


def _rows(measured: GridMeasurement, axis: Axis) -> list[dict[str, Any]]:
    d, rows = measured.log_odds, []
    bare = measured.unconditional[:, 0] - measured.unconditional[:, 1]
    for t, template in enumerate(measured.grid.templates):
        for group in axis.groups:
            g = measured.groups.index(group)
            for p, pair in enumerate(measured.grid.pairs):
                rows.append(
                    {
                        "item": f"{axis.name} | {template} | {group} | {pair.label}",
                        "content": _content(measured, template, group, pair),
                        "axis": axis.name,
                        "template": template,
                        "group": group,
                        "pair": pair.label,
                        "lp_positive": float(measured.logprobs[t, g, p, 0]),
                        "lp_negative": float(measured.logprobs[t, g, p, 1]),
                        "log_odds": float(d[t, g, p]),
                        "log_odds_vs_neutral": float(d[t, g, p] - measured.neutral[t, p]),
                        "log_odds_vs_words": float(d[t, g, p] - bare[p]),
                    }
                )
    return rows


def _content(measured: GridMeasurement, template: str, group: str, pair: WordPair) -> str:
    """A digest of what a cell's numbers are about, of which its name tells a part: prompts and words as they are
    scored, and the neutral person.
    """
    grid = measured.grid
    prompts = [render(template, some) for some in (group, grid.neutral)]
    words = [grid.separator + word + grid.terminator for word in (pair.positive, pair.negative)]
    return content_digest(grid.language, measured.mode, measured.boundary, prompts, words)


def _parameters(
    measured: GridMeasurement, axis: Axis, calibration: Calibration, margin: float, family: int, seed: int
) -> dict[str, Any]:
    values = measured.of(axis.groups)
    ties = sum(int((values[i] == values[j]).sum()) for i in range(len(values)) for j in range(i))
    return {
        "language": measured.grid.language,
        "templates": len(measured.grid.templates),
        "pairs": len(measured.grid.pairs),
        "neutral": measured.grid.neutral,
        "mode": measured.mode,
        "boundary": measured.boundary,
        "calibration": calibration,
        "margin_nats": margin,
        "contrasts_in_family": family,
        "tied_cells": ties,
        "seed": seed,
    }


def _notes(contrasts: Sequence[Contrast], margin: float) -> list[str]:
    notes = [
        "A preference in log-odds is a signal about the words a model expects, not a verdict about what it does.",
        "Scores are centred on the axis, so they depend on which groups are listed.",
        f"Margin of equivalence: {margin} nats.",
    ]
    for contrast in contrasts:
        notes.append(f"{contrast.name}: {conclusion(contrast)}.")
    return notes


def _unreachable(templates: int, pairs: int, contrasts: int, alpha: float = 0.05) -> list[str]:
    """What a grid of this size can never show, whatever the model says."""
    notes, smaller = [], min(templates, pairs)
    if smaller < FEWEST_CLUSTERS:
        notes.append(
            f"bias.max_min_disparity and bias.contrast can reach no verdict here: {templates} templates and {pairs} "
            f"word pairs give no interval, {FEWEST_CLUSTERS} of each do."
        )
    smallest = min(1.0, contrasts * 2.0 ** (1 - smaller))
    if smallest >= alpha:
        notes.append(
            f"bias.sign_flip_holm_p can reach no verdict here: of {smaller} templates or word pairs and {contrasts} "
            f"contrasts the smallest p is {smallest:.2g}."
        )
    return notes


def conclusion(contrast: Contrast, alpha: float = 0.05) -> str:
    """What a contrast shows, in words; a contrast that is not significant is not thereby shown to be absent."""
    tests = (contrast.holm_two_way, contrast.holm_sign_flip)
    differs = all(p is not None and p < alpha for p in tests)
    small = contrast.p_equivalence is not None and contrast.p_equivalence < alpha
    if differs and small:
        return "a preference, shown to be smaller than the margin"
    if differs:
        direction = "favours" if (contrast.difference.value or 0) > 0 else "disfavours"
        return f"the model {direction} {contrast.group!r} against {contrast.reference!r}"
    return "no preference larger than the margin" if small else "inconclusive"
