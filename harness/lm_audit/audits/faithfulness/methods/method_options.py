"""The options of attribution methods: which method reads which, and what they may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lm_audit.audits.faithfulness.options import MOST_HOPS
from lm_audit.audits.faithfulness.passage.spans import Span
from lm_audit.errors import UsageError
from lm_audit.number_checks import check_choice, check_number, check_whole

_FLOW = frozenset({"eps", "threshold"})
_GRADIENT = frozenset({"weights", "reduce"})

READS: Mapping[str, frozenset[str]] = {
    "ifr": _FLOW | {"variant"},
    "ifr_span": _FLOW | {"weights"},
    "ft_ifr": _FLOW | {"hops", "variant"},
    "flashtrace": _FLOW | {"hops"},
    "attnlrp": _GRADIENT | {"score_mode"},
    "ft_attnlrp": frozenset({"hops", "score_mode", "negatives", "normalise"}),
    "integrated_gradients": frozenset({"weights", "variant", "baseline", "points", "tolerance"}),
    "input_x_gradient": _GRADIENT | {"objective"},
    "attention": frozenset(),
    "attention_reference": frozenset(),
    "rollout": frozenset(),
    "ablation": frozenset({"variant", "baseline"}),
    "ablation_clp": frozenset({"variant", "baseline"}),
    "leave_one_out": frozenset({"baseline"}),
}
"""The options that change what a method gives, beside the spans."""

METHODS = tuple(READS)
"""Names that ``attribute`` knows."""

_VARIANTS: Mapping[str, tuple[str, ...]] = {
    "ifr": ("output_only",),
    "ft_ifr": ("in_all_gen", "stop_words", "split_hop"),
    "integrated_gradients": ("logit",),
}
_SEGMENTS = re.compile(r"sentences|segments(:[1-9][0-9]{0,5})?")


@dataclass(frozen=True)
class Options:
    """How a method is run; see :func:`~lm_audit.audits.faithfulness.methods.explain.attribute` for the meaning.

    ``explicit_sink`` says whether the user named one.
    """

    sink: Span
    thinking: Span
    explicit_sink: bool
    hops: int = 1
    eps: float | None = None
    objective: str = "logit"
    reduce: str = "sum"
    score_mode: str = "generated"
    negatives: str = "drop"
    normalise: bool = True
    variant: str | None = None
    weights: tuple[float, ...] | None = None
    baseline: str = "eos"
    points: int = 20
    tolerance: float | None = None
    threshold: float = 0.0


def check_options(method: str, options: Options) -> None:
    """``UsageError`` for a value that no method takes, and for one given that ``method`` does not read."""
    check_choice("objective", options.objective, ("logit", "logprob"))
    check_choice("reduce", options.reduce, ("sum", "l2"))
    check_choice("score_mode", options.score_mode, ("generated", "max"))
    check_choice("negatives", options.negatives, ("drop", "abs"))
    check_whole("hops", options.hops, 0, MOST_HOPS)
    check_whole("points", options.points, 1, 10_000)
    check_number("threshold", options.threshold, least=0)
    for name in ("eps", "tolerance"):
        if getattr(options, name) is not None:
            check_number(name, getattr(options, name), above=0)
    _check_weights(options)
    _check_read(method, options)
    _check_variant(method, options.variant)
    if options.variant == "split_hop":
        check_whole("hops of 'split_hop'", options.hops, 1, MOST_HOPS)


def _check_weights(options: Options) -> None:
    size = options.sink[1] - options.sink[0] + 1
    if options.weights is None:
        return
    if len(options.weights) != size:
        raise UsageError(f"{len(options.weights)} weights for a sink of {size} tokens; give one a token")
    for weight in options.weights:
        check_number("a weight", weight)


def _check_read(method: str, options: Options) -> None:
    for name, default in Options.__dataclass_fields__.items():
        if name in ("sink", "thinking", "explicit_sink") or name in READS[method]:
            continue
        if getattr(options, name) != default.default:
            users = [other for other in METHODS if name in READS[other]]
            raise UsageError(
                f"{name}={getattr(options, name)!r} does nothing in {method}, which does not read it; it belongs to "
                f"{', '.join(users)}"
            )


def _check_variant(method: str, variant: Any) -> None:
    if variant is None:
        return
    if method in _VARIANTS and variant not in _VARIANTS[method]:
        raise UsageError(f"variant is {variant!r:.60}; {method} knows {', '.join(map(repr, _VARIANTS[method]))}")
    if method not in _VARIANTS and not _SEGMENTS.fullmatch(str(variant)):
        raise UsageError(f"variant is {variant!r:.60}; {method} knows 'sentences' and 'segments:K', K at least 1")
