"""The multi-hop methods: FT-IFR with its variants, FlashTrace, and FT-AttnLRP."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.methods.coordinates import columns_of, copied_rows
from lm_audit.audits.faithfulness.methods.hops import Hops, Vector, multi_hop, observation_mask, split_hops
from lm_audit.audits.faithfulness.methods.ifr.routes import flow_span
from lm_audit.audits.faithfulness.methods.method_options import Options
from lm_audit.audits.faithfulness.methods.relevance import gradient_span
from lm_audit.audits.faithfulness.methods.traced import Outcome, TracedPassage
from lm_audit.audits.faithfulness.passage.spans import Span
from lm_audit.errors import UsageError

STOP_TOKENS = frozenset({",", ".", ""})
"""Token texts, stripped, that FlashTrace leaves out."""


def ft_ifr(explainer: TracedPassage, options: Options) -> Outcome:
    """FT-IFR: hop 0 from the sink, then through the thinking; variants "in_all_gen", "stop_words", "split_hop"."""
    if options.variant == "in_all_gen":
        return _both(explainer, options, all_generation=True)
    prompt, columns = len(explainer.passage.prompt_ids), len(explainer.passage.ids)
    mask = observation_mask(columns, prompt, options.thinking[0], options.sink)
    span_flow = _span_flow(explainer, options)
    if options.variant == "split_hop":
        hops = split_hops(
            span_flow, prompt, columns, start=options.sink, thinking=options.thinking, parts=options.hops, mask=mask
        )
        return _placed(explainer, options, hops)
    keep = _keep_mask(explainer) if options.variant == "stop_words" else np.ones(columns)
    hops = multi_hop(
        span_flow,
        prompt,
        columns,
        start=options.sink,
        through=options.thinking,
        hops=options.hops,
        mask=mask * keep,
        keep=keep,
        start_weights=_sink_weights(options, keep, prompt) if options.variant == "stop_words" else None,
    )
    return _placed(explainer, options, hops, keep)


def flashtrace(explainer: TracedPassage, options: Options) -> Outcome:
    """FlashTrace: recursive hops over thinking and answer together, commas, full stops and white space left out."""
    if max(options.sink[1], options.thinking[1]) > explainer.passage.answer_end:
        raise UsageError(
            f"sink {options.sink} or thinking {options.thinking} contains the end-of-text token; "
            f"FlashTrace explains the tokens 0 to {explainer.passage.answer_end}"
        )
    return _both(explainer, options, all_generation=False)


def _both(explainer: TracedPassage, options: Options, *, all_generation: bool) -> Outcome:
    prompt, columns = len(explainer.passage.prompt_ids), len(explainer.passage.ids)
    through = (min(options.sink[0], options.thinking[0]), max(options.sink[1], options.thinking[1]))
    keep = np.ones(columns) if all_generation else _keep_mask(explainer)
    start = through if all_generation else options.sink
    hops = multi_hop(
        _span_flow(explainer, options),
        prompt,
        columns,
        start=start,
        through=through,
        hops=options.hops,
        mask=observation_mask(columns, prompt, through[0], None) * keep,
        keep=keep,
        start_weights=None if all_generation else _sink_weights(options, keep, prompt),
    )
    return _placed(explainer, options, hops, keep)


def _span_flow(explainer: TracedPassage, options: Options):  # type: ignore[no-untyped-def]
    def span_flow(span: Span, weights: Vector | None) -> Vector:
        if weights is not None and weights.sum() <= 0.0:
            return np.zeros(len(explainer.passage.ids))
        omega = None if weights is None else torch.tensor(weights)
        rows, eps, threshold = explainer.positions(span), options.eps, options.threshold
        kept = explainer.kept("flow", rows, None if omega is None else omega.tolist(), eps, threshold)
        (tokens,) = kept.get(lambda: [flow_span(explainer.trace, rows, omega, eps=eps, threshold=threshold).tokens])
        return tokens.double().cpu().numpy()

    return span_flow


def _keep_mask(explainer: TracedPassage) -> Vector:
    """1 for tokens that stay, 0 for stop tokens of the user's text and the generation; template tokens stay."""
    keep = np.ones(len(explainer.passage.ids))
    for position, text in zip(explainer.passage.columns, explainer.passage.tokens, strict=True):
        if text.strip() in STOP_TOKENS:
            keep[position] = 0.0
    return keep


def _sink_weights(options: Options, keep: Vector, prompt: int) -> Vector:
    return keep[prompt + options.sink[0] : prompt + options.sink[1] + 1]


def _placed(explainer: TracedPassage, options: Options, hops: Hops, keep: Vector | None = None) -> Outcome:
    """Hops over all positions as columns of the attribution; stop tokens' rows stay undefined."""
    columns = explainer.passage.columns
    trimmed = Hops(hops.vectors[:, columns], hops.observed[:, columns], hops.ratios, hops.mask[columns], hops.segments)

    def rows() -> Vector:
        matrix = copied_rows(explainer, trimmed.total, options.sink)
        if keep is not None:
            matrix[keep[explainer.rows] == 0.0] = np.nan
        return matrix

    details = {"ratios": hops.ratios, "segments": hops.segments, "observed": trimmed.mask}
    return Outcome(rows, trimmed.total, trimmed, details)


def ft_attnlrp(explainer: TracedPassage, options: Options) -> Outcome:
    """FT-AttnLRP in columns of the attribution: relevance of spans, negatives dropped or made positive at each hop."""
    features, columns = len(explainer.passage.user), len(explainer.passage.columns)
    kind = "max" if options.score_mode == "max" else "logit"

    def span_relevance(span: Span, weights: Vector | None) -> Vector:
        count = span[1] - span[0] + 1
        if weights is None:
            omega = torch.full((count,), 1.0 / count if options.normalise else 1.0)
        else:
            omega = torch.tensor(weights)
        rows = explainer.positions(span)
        kept = explainer.kept("relevance", rows, omega.tolist(), kind)
        (full,) = kept.get(lambda: [gradient_span(explainer.trace, rows, omega, kind=kind, lrp=True)])
        return _positive(columns_of(explainer, full), options)

    hops = multi_hop(
        span_relevance,
        features,
        columns,
        start=options.sink,
        through=options.thinking,
        hops=options.hops,
        mask=observation_mask(columns, features, options.thinking[0], options.sink),
        renormalise=options.normalise,
    )
    details = {"ratios": hops.ratios, "observed": hops.mask}
    return Outcome(copied_rows(explainer, hops.total, options.sink), hops.total, hops, details)


def _positive(vector: NDArray[np.float64], options: Options) -> Vector:
    kept = np.abs(vector) if options.negatives == "abs" else np.clip(vector, 0.0, None)
    if not options.normalise:
        return kept
    total = kept.sum()
    return kept / (total + 1e-12) if total > 0.0 else np.zeros_like(kept)
