"""Controls with a planted answer: the toy model trained on made-up questions a known number of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.benchmark import Benchmark
from lm_audit.audits.leakage.conditions import Effect, QuestionScores, order_effect, question_scores
from lm_audit.audits.leakage.figures import spec
from lm_audit.audits.leakage.items import LETTERS, Item, full_text
from lm_audit.audits.leakage.measuring import measure_conditions
from lm_audit.evidence import Control, Evidence, Figure

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

_SUBJECTS = (
    "baker", "pilot", "nurse", "clerk", "farmer", "painter", "guard", "tailor", "singer", "judge", "miner", "sailor",
    "builder", "teacher", "driver", "weaver",
)  # fmt: skip
_DEEDS = ("carry", "find", "sell", "paint", "repair", "borrow", "hide", "open", "clean", "buy", "lose", "wrap")
_PLACES = ("bridge", "garden", "river", "station", "mill", "cellar", "harbour", "chapel", "square", "market", "attic")
_QUALITIES = (
    "small", "heavy", "broken", "old", "shiny", "empty", "round", "wooden", "cheap", "quiet", "warm", "narrow", "dusty",
    "striped", "yellow", "silver",
)  # fmt: skip
_THINGS = (
    "basket", "lamp", "clock", "ladder", "kettle", "blanket", "mirror", "violin", "bucket", "chair", "bottle", "hammer",
    "jacket", "letter", "window", "table", "drum", "coin", "anchor", "candle",
)  # fmt: skip

TIMES = (0, 4, 16, 64)
"""How often the planted questions are trained on; 0 is the untouched model."""

LEARNING_RATE = 2e-3
ALPHA = 0.01
"""The level at which a control finds an effect or stays silent."""


def made_up_items(n: int, *, seed: int, options: int = 4) -> list[Item]:
    """``n`` questions about nothing, the same for the same seed; by construction every order of options is alike."""
    rng = np.random.default_rng([seed, 11])
    items: dict[str, Item] = {}
    while len(items) < n:
        who, deed, place = (_pick(rng, words) for words in (_SUBJECTS, _DEEDS, _PLACES))
        question = f"What did the {who} {deed} near the {place} on day {int(rng.integers(100, 1000))}?"
        things = rng.choice(len(_THINGS), options, replace=False)
        texts = tuple(f"the {_pick(rng, _QUALITIES)} {_THINGS[int(thing)]}" for thing in things)
        items.setdefault(
            question, Item(str(len(items) + 1), "made-up", question, texts, LETTERS[int(rng.integers(options))])
        )
    return list(items.values())


def _pick(rng: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(rng.integers(len(words)))]


def trained_on(model: LanguageModel, items: Sequence[Item], *, times: int, seed: int) -> LanguageModel:
    """A copy of the model that has read the items' published texts ``times`` times; the model itself for 0."""
    from lm_audit.models.tiny import train_tiny

    if not times:
        return model
    return train_tiny(
        model,
        [full_text(item) for item in items],
        seed=seed,
        epochs=times,
        lr=LEARNING_RATE,
        batch_size=16,
        warmup_steps=4,
    )


@dataclass(frozen=True)
class Planted:
    """The order effect on questions that were trained on ``times`` times, and on as many that never were."""

    times: int
    seen: Effect
    unseen: Effect


def plant(model: LanguageModel, *, times: Sequence[int] = TIMES, questions: int = 48, seed: int) -> list[Planted]:
    """Train on half of the made-up questions, measure both halves: one result for each number of times seen."""
    items = made_up_items(questions, seed=seed)
    seen, unseen = items[::2], items[1::2]
    found = []
    for count in times:
        trained = trained_on(model, seen, times=count, seed=seed)
        effects = [order_effect(_scores(trained, half, seed), "logprob", seed=seed) for half in (seen, unseen)]
        found.append(Planted(count, *effects))
    return found


def _scores(model: LanguageModel, items: Sequence[Item], seed: int) -> QuestionScores:
    table = measure_conditions(model, items, orders=3, baselines=(), seed=seed)
    return question_scores(table, items)


def positive_control(results: Sequence[Planted]) -> Evidence:
    """The most often seen half must be found, and the effect must grow with every step in times seen."""
    evidence = _evidence(results, "seen")
    means = [r.seen.mean.value or 0.0 for r in results]
    found = _p(results[-1].seen) < ALPHA
    growing = all(a < b for a, b in pairwise(means))
    observed = ", ".join(f"{r.times}x: {m:.4f} (p {_p(r.seen):.2g})" for r, m in zip(results, means, strict=True))
    expected = f"an order effect that grows with the times seen and has p < {ALPHA} at {results[-1].times} times"
    evidence.control = Control("positive", found and growing, expected, observed)
    return evidence


def negative_control(results: Sequence[Planted]) -> Evidence:
    """Questions that the trained models never saw must not be found."""
    evidence = _evidence(results, "unseen")
    observed = ", ".join(f"{r.times}x: p {_p(r.unseen):.2g}" for r in results)
    # The smallest p-value of all trainings, by Bonferroni.
    silent = min(_p(r.unseen) for r in results) * len(results) >= ALPHA
    expected = f"no order effect (p >= {ALPHA} after Bonferroni) on questions of the same kind that were not trained on"
    evidence.control = Control("negative", silent, expected, observed)
    return evidence


def _p(effect: Effect) -> float:
    value = effect.placed.value if effect.placed is not None else None
    return 1.0 if value is None else value


def _evidence(results: Sequence[Planted], half: str) -> Evidence:
    evidence = Evidence("leakage", headline="leakage.control.order_effect")
    last: Effect = getattr(results[-1], half)
    evidence.metric("leakage.control.order_effect", last.mean)
    if last.placed is not None:
        evidence.metric("leakage.control.order_effect.p", last.placed)
    evidence.rows = [_row(result, name) for result in results for name in ("seen", "unseen")]
    evidence.parameters.update({"times": [r.times for r in results], "learning_rate": LEARNING_RATE})
    evidence.figures.append(_growth(evidence.rows))
    return evidence


def _row(result: Planted, half: str) -> dict[str, Any]:
    effect: Effect = getattr(result, half)
    value = {"value": effect.mean.value, "low": effect.mean.low, "high": effect.mean.high, "p": _p(effect)}
    return {"item": f"{half}-{result.times}", "half": half, "times": result.times, **value}


def _growth(rows: Sequence[dict[str, Any]]) -> Figure:
    color = {"field": "half", "type": "nominal", "title": None, "scale": {"range": ["#D55E00", "#0072B2"]}}
    x = {"field": "times", "type": "ordinal", "title": "times seen in training"}
    tooltip = [
        {"field": "half"},
        {"field": "times"},
        {"field": "value", "format": ".4f"},
        {"field": "p", "format": ".3g"},
    ]
    y = {"field": "low", "type": "quantitative", "title": "order effect, nats a byte"}
    layers = [
        {"mark": {"type": "rule", "strokeDash": [4, 4], "color": "#777777"}, "encoding": {"y": {"datum": 0}}},
        {"mark": "rule", "encoding": {"x": x, "y": y, "y2": {"field": "high"}, "color": color}},
        {
            "mark": {"type": "point", "filled": True, "size": 80},
            "encoding": {"x": x, "y": {"field": "value", "type": "quantitative"}, "color": color, "tooltip": tooltip},
        },
    ]
    caption = "Half of the questions was trained on; the other half, of the same kind, never was. Dashed: no effect."
    return Figure("growth", "Effect by times seen", "vega-lite", spec(rows, layer=layers), caption)


def made_up_benchmark(n: int, *, seed: int) -> Benchmark:
    """Made-up questions as a benchmark."""
    items = tuple(made_up_items(n, seed=seed))
    return Benchmark("made-up", items, ("made-up",), n, n)
