"""The options of attribution methods: which method reads which, and what they may be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from lm_audit.audits.faithfulness.options import MOST_HOPS
from lm_audit.audits.faithfulness.passage.spans import Span
from lm_audit.errors import UsageError
from lm_audit.shared.number_checks import check_choice, check_number, check_whole


class MethodOptions:
    """What a method reads beside the spans: a frozen record a method, without what the method does not read."""


@dataclass(frozen=True, kw_only=True)
class _Flow(MethodOptions):
    """IFR's proximities: ``eps`` another epsilon of its norm, ``threshold`` the smallest that counts (L1 units)."""

    eps: float | None = None
    threshold: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Hops(MethodOptions):
    """How often the attribution is carried on through the thought."""

    hops: int = 1


@dataclass(frozen=True, kw_only=True)
class _Weights(MethodOptions):
    """The share of each token of the sink, one a token; ``None``: all alike."""

    weights: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class _Reduce(MethodOptions):
    """How a token's gradient becomes one number: "sum" over the features, or their "l2" norm."""

    reduce: str = "sum"


@dataclass(frozen=True, kw_only=True)
class _ScoreMode(MethodOptions):
    """The token whose logit is explained: the "generated" one, or the likeliest ("max")."""

    score_mode: str = "generated"


@dataclass(frozen=True, kw_only=True)
class _Baseline(MethodOptions):
    """What stands in the place of a token that is taken out."""

    baseline: str = "eos"


@dataclass(frozen=True, kw_only=True)
class _Variant(MethodOptions):
    """Another form of the method, by name; ``None``: the usual one."""

    variant: str | None = None


@dataclass(frozen=True, kw_only=True)
class IfrOptions(_Flow, _Variant):
    """``variant`` "output_only": rows of the sink alone."""


@dataclass(frozen=True, kw_only=True)
class IfrSpanOptions(_Flow, _Weights):
    """IFR of the sink as one."""


@dataclass(frozen=True, kw_only=True)
class FtIfrOptions(_Flow, _Hops, _Variant):
    """``variant`` "in_all_gen", "stop_words" or "split_hop"."""


@dataclass(frozen=True, kw_only=True)
class FlashTraceOptions(_Flow, _Hops):
    """FlashTrace."""


@dataclass(frozen=True, kw_only=True)
class AttnLrpOptions(_Weights, _Reduce, _ScoreMode):
    """AttnLRP."""


@dataclass(frozen=True, kw_only=True)
class FtAttnLrpOptions(_Hops, _ScoreMode):
    """AttnLRP over hops: "drop" or take as they are ("abs") the ``negatives``, and ``normalise`` every hop."""

    negatives: str = "drop"
    normalise: bool = True


@dataclass(frozen=True, kw_only=True)
class IntegratedGradientsOptions(_Weights, _Variant, _Baseline):
    """``points`` of the path, doubled until the rows' sums are within ``tolerance``; ``variant`` "logit" explains the
    logit in place of the log-probability.
    """

    points: int = 20
    tolerance: float | None = None


@dataclass(frozen=True, kw_only=True)
class InputXGradientOptions(_Weights, _Reduce):
    """``objective``: "logit" or "logprob"."""

    objective: str = "logit"


@dataclass(frozen=True, kw_only=True)
class NoOptions(MethodOptions):
    """The method reads nothing but the spans."""


@dataclass(frozen=True, kw_only=True)
class AblationOptions(_Variant, _Baseline):
    """``variant``: "sentences", or "segments:K" of about equal length."""


@dataclass(frozen=True, kw_only=True)
class LeaveOneOutOptions(_Baseline):
    """One token after the other is replaced."""


OPTIONS: Mapping[str, type[MethodOptions]] = {
    "ifr": IfrOptions,
    "ifr_span": IfrSpanOptions,
    "ft_ifr": FtIfrOptions,
    "flashtrace": FlashTraceOptions,
    "attnlrp": AttnLrpOptions,
    "ft_attnlrp": FtAttnLrpOptions,
    "integrated_gradients": IntegratedGradientsOptions,
    "input_x_gradient": InputXGradientOptions,
    "attention": NoOptions,
    "attention_reference": NoOptions,
    "rollout": NoOptions,
    "ablation": AblationOptions,
    "ablation_clp": AblationOptions,
    "leave_one_out": LeaveOneOutOptions,
}
"""Method -> the record of its options."""

METHODS = tuple(OPTIONS)
"""Names that ``attribute`` knows."""


def _names(record: type[Any]) -> frozenset[str]:
    return frozenset(field.name for field in fields(record))


READS: Mapping[str, frozenset[str]] = {method: _names(record) for method, record in OPTIONS.items()}
"""The options that change what a method gives, beside the spans."""


class Keywords(TypedDict, total=False):
    """The options of all methods, as :func:`~lm_audit.audits.faithfulness.methods.explain.attribute` takes them by
    name; their meaning and what they are unless given stand with the records.
    """

    hops: int
    eps: float | None
    threshold: float
    objective: str
    reduce: str
    score_mode: str
    negatives: str
    normalise: bool
    variant: str | None
    weights: Sequence[float] | None
    baseline: str
    points: int
    tolerance: float | None


_VARIANTS: Mapping[str, tuple[str, ...]] = {
    "ifr": ("output_only",),
    "ft_ifr": ("in_all_gen", "stop_words", "split_hop"),
    "integrated_gradients": ("logit",),
}
_SEGMENTS = re.compile(r"sentences|segments(:[1-9][0-9]{0,5})?")


@dataclass(frozen=True, kw_only=True)
class Options(
    IfrOptions, IfrSpanOptions, FtIfrOptions, FlashTraceOptions, AttnLrpOptions, FtAttnLrpOptions,
    IntegratedGradientsOptions, InputXGradientOptions,
):  # fmt: skip
    """How a method is run: the spans, and the options of all methods, of which it reads its own.

    ``explicit_sink`` says whether the user named one.
    """

    sink: Span
    thinking: Span
    explicit_sink: bool


def options_for(
    method: str, given: MethodOptions | None, keywords: Keywords, *, sink: Span, thinking: Span, explicit_sink: bool
) -> Options:
    """The options of one run, from the method's record or from keywords.

    ``UsageError`` for both at once, for another method's record, for a keyword that no method has or that ``method``
    does not read and that would change nothing, and for values that cannot be.
    """
    if given is not None and (keywords or type(given) is not OPTIONS[method]):
        raise UsageError(
            f"{method} takes its options as {OPTIONS[method].__name__} or as keywords, not both; got "
            f"{type(given).__name__}{' and ' + ', '.join(keywords) if keywords else ''}"
        )
    chosen: dict[str, Any] = dict(keywords) if given is None else vars(given)
    unknown = sorted(chosen.keys() - Keywords.__annotations__.keys())
    if unknown:
        raise UsageError(f"{unknown[0]!r} is an option of no method; there are {', '.join(Keywords.__annotations__)}")
    if chosen.get("weights") is not None:
        chosen = chosen | {"weights": tuple(float(weight) for weight in chosen["weights"])}
    options = Options(sink=sink, thinking=thinking, explicit_sink=explicit_sink, **chosen)
    check_options(method, options)
    return options


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
    for field in fields(options):
        name = field.name
        if name in READS[method] or name not in Keywords.__annotations__:
            continue
        if getattr(options, name) != field.default:
            users = [other for other in METHODS if name in READS[other]]
            raise UsageError(
                f"{name}={getattr(options, name)!r} does nothing in {method}, which does not read it; it belongs to "
                f"{', '.join(users)}"
            )


def _check_variant(method: str, variant: object) -> None:
    if variant is None:
        return
    if method in _VARIANTS and variant not in _VARIANTS[method]:
        raise UsageError(f"variant is {variant!r:.60}; {method} knows {', '.join(map(repr, _VARIANTS[method]))}")
    if method not in _VARIANTS and not _SEGMENTS.fullmatch(str(variant)):
        raise UsageError(f"variant is {variant!r:.60}; {method} knows 'sentences' and 'segments:K', K at least 1")
