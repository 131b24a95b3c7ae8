"""The audit's controls: what was planted must be found by every test, and nothing where nothing was planted.

Both verdicts are statements with a stated error, and functions of p-values alone (:func:`missed`, :func:`alarms`). A
sound audit passes the negative control with probability 0.999 or more, whatever the model: its six tests are exact on
questions whose order and letters chance made, at levels that add up to 0.001. The positive one asks of planted text for
p-values below 0.001, which a model that knows the text gives by far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lm_audit.audits.leakage.controls.planted import LEARNING_RATE, Half, Planted
from lm_audit.audits.leakage.evidence.figures import spec
from lm_audit.audits.leakage.signs import paired_sign_flip
from lm_audit.audits.second_opinion import held_by_its_rows
from lm_audit.evidence import Control, ControlRole, Evidence, Figure
from lm_audit.sources import MetricSource
from lm_audit.sources.record import Where
from lm_audit.stats import Estimate

FOUND = 0.001
"""Each test must give less on planted questions."""

SILENT = 0.00015
"""No test of what was not planted may give this or less..."""

SILENT_PAIRS = 0.00025
"""... nor that of 12 pairs of neighbours this, since it can give no less than 0.00024: together 0.001 by chance."""

NEIGHBOURS = "order of neighbours"

NO_EFFECT = {"leakage.control.order_effect": 0.0}
"""Made-up questions have no order that is likelier than another."""


def missed(tests: Mapping[str, float]) -> list[str]:
    """The tests of planted questions that do not find them, each with its p-value."""
    return [f"{name}: p {p:.2g}" for name, p in tests.items() if not p < FOUND]


def alarms(tests: Mapping[str, float]) -> list[str]:
    """The tests that find something where nothing was planted."""
    limits = {name: SILENT_PAIRS if name == NEIGHBOURS else SILENT for name in tests}
    return [f"{name}: p {p:.2g}" for name, p in tests.items() if not p > limits[name]]


def positive_tests(planted: Planted) -> dict[str, float]:
    """p-values of the tests of planted questions; the order effect has grown by training."""
    half = planted.seen
    grown = paired_sign_flip(_gain(half)).value
    return {
        "order effect": _p(half.effect.placed),
        "its growth by training": 1.0 if grown is None else grown,
        "rank of the published order": half.first_p,
        NEIGHBOURS: half.swap_p,
        "completion": planted.completion_p,
        "likelihood against other questions": planted.membership_p,
        "published score": half.published.score_p,
        "published score, orders": half.published.order_p,
    }


def negative_tests(planted: Planted) -> dict[str, float]:
    """p-values where nothing was planted: questions that the trained model never saw, and the untouched model."""
    half = planted.unseen
    return {
        "order effect": _p(half.effect.placed),
        "order effect, untouched model": _p(planted.seen.untouched.placed),
        "rank of the published order": half.first_p,
        NEIGHBOURS: half.swap_p,
        "published score": half.published.score_p,
        "published score, orders": half.published.order_p,
    }


def positive_control(planted: Planted) -> Evidence:
    """Every test finds the planted questions, and scores are what they should be."""
    half, tests = planted.seen, positive_tests(planted)
    evidence = _evidence(planted, half)
    expected = (
        f"p < {FOUND} in {len(tests)} tests of questions that the model was trained on, not all alike, and scores "
        f"within {half.agreement} nats of plain forward passes"
    )
    observed = f"{_told(tests, half)}; {planted.training}"
    problems = [*missed(tests), *_unsound(half), *planted.misreported]
    evidence.control = _control("positive", problems, expected, observed)
    return held_by_its_rows(evidence, chances=NO_EFFECT, counts=_asked(planted))


def negative_control(planted: Planted) -> Evidence:
    """Questions that the trained model never saw, and planted ones under the untouched model, are not found."""
    half, tests = planted.unseen, negative_tests(planted)
    evidence = _evidence(planted, half)
    expected = (
        f"p > {SILENT} (neighbours: {SILENT_PAIRS}) in {len(tests)} tests where nothing was planted (a false alarm in "
        "at most 1 of 1,000)"
    )
    evidence.control = _control("negative", [*alarms(tests), *_unsound(half)], expected, _told(tests, half))
    return held_by_its_rows(evidence, chances=NO_EFFECT, counts=_asked(planted))


def _asked(planted: Planted) -> list[tuple[Where, int]]:
    """Half of the questions on each side."""
    both = len(planted.seen.items) + len(planted.unseen.items)
    return [({"half": name}, both // 2) for name in ("seen", "unseen")]


def _control(role: ControlRole, problems: Sequence[str], expected: str, observed: str) -> Control:
    return Control(role, not problems, expected, f"not so: {'; '.join(problems)}. {observed}" if problems else observed)


def _told(tests: Mapping[str, float], half: Half) -> str:
    shown = ", ".join(f"{name}: p {p:.2g}" for name, p in tests.items())
    hits = ", ".join("none" if one is None else f"{one:.2f}" for one in (half.published.score, half.published.mixed))
    return f"{shown}; scores within {half.apart:.1g} nats; hits a question, published and mixed: {hits} of 4"


def _gain(half: Half) -> np.ndarray:
    return half.differences - half.untouched_differences


def _unsound(half: Half) -> list[str]:
    """What is wrong with a half whatever its tests say: scores that a plain pass does not give, questions all alike."""
    problems = []
    if not half.apart < half.agreement:
        problems.append(f"scores differ from plain forward passes by {half.apart:.2g} nats")
    known = half.differences[np.isfinite(half.differences)]
    different = len(np.unique(known.round(9)))
    if 2 * different < len(half.items):
        problems.append(f"only {different} different effects of {len(half.items)} questions")
    return [*problems, *half.published.faults, *half.misreported]


def _p(test: Estimate | None) -> float:
    return 1.0 if test is None or test.value is None else test.value


def _evidence(planted: Planted, half: Half) -> Evidence:
    evidence = Evidence("leakage", headline="leakage.control.order_effect")
    name = "seen" if half is planted.seen else "unseen"
    source = MetricSource.mean("effect", {"half": name})
    evidence.metric("leakage.control.order_effect", half.effect.mean, source)
    if half.effect.placed is not None:
        evidence.metric("leakage.control.order_effect.p", half.effect.placed)
    evidence.rows = [
        {"item": item.key, "half": key, "effect": float(effect), "untouched_effect": float(before)}
        for key, some in (("seen", planted.seen), ("unseen", planted.unseen))
        for item, effect, before in zip(some.items, some.differences, some.untouched_differences, strict=True)
    ]
    evidence.parameters.update(
        {"training_steps": planted.training.steps, "criterion": planted.training.least, "learning_rate": LEARNING_RATE}
    )
    evidence.figures.append(_growth(planted))
    return evidence


def _growth(planted: Planted) -> Figure:
    rows: list[dict[str, Any]] = [
        {"half": name, "model": model, "value": e.mean.value, "low": e.mean.low, "high": e.mean.high, "p": _p(e.placed)}
        for name, half in (("seen", planted.seen), ("unseen", planted.unseen))
        for model, e in (("untouched", half.untouched), ("trained", half.effect))
    ]
    color = {"field": "half", "type": "nominal", "title": None, "scale": {"range": ["#D55E00", "#0072B2"]}}
    x = {"field": "model", "type": "nominal", "title": None, "sort": None}
    shift = {"field": "half"}
    tooltip = [
        {"field": "half"},
        {"field": "model"},
        {"field": "value", "format": ".4f"},
        {"field": "p", "format": ".3g"},
    ]
    y = {"field": "low", "type": "quantitative", "title": "order effect, nats a byte"}
    value = {"field": "value", "type": "quantitative"}
    layers = [
        {"mark": {"type": "rule", "strokeDash": [4, 4], "color": "#777777"}, "encoding": {"y": {"datum": 0}}},
        {"mark": "rule", "encoding": {"x": x, "xOffset": shift, "y": y, "y2": {"field": "high"}, "color": color}},
        {
            "mark": {"type": "point", "filled": True, "size": 80},
            "encoding": {"x": x, "xOffset": shift, "y": value, "color": color, "tooltip": tooltip},
        },
    ]
    caption = "Half of the questions was trained on; the other half, of the same kind, never was. Dashed: no effect."
    return Figure("growth", "Effect before and after training", "vega-lite", spec(rows, layer=layers), caption)
