"""The methods behind :func:`attribute`: each turns a passage's trace into a matrix over the columns."""

from __future__ import annotations

import difflib
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm_audit.audits.faithfulness.deletion.perturb import baseline_ids
from lm_audit.audits.faithfulness.methods.ablation import (
    ablation_matrix,
    concentrated_log_probability,
    log_probability,
    segment_plan,
    sentence_plan,
    token_plan,
)
from lm_audit.audits.faithfulness.methods.attention_maps import attention_rollout, cumulative_attention, mean_attention
from lm_audit.audits.faithfulness.methods.coordinates import columns_of, copied_rows, masked_from_token
from lm_audit.audits.faithfulness.methods.hop_methods import flashtrace, ft_attnlrp, ft_ifr
from lm_audit.audits.faithfulness.methods.ifr.routes import flow_matrix, flow_span
from lm_audit.audits.faithfulness.methods.method_options import METHODS, Options
from lm_audit.audits.faithfulness.methods.relevance import gradient_rows, gradient_span, integrated_gradients
from lm_audit.audits.faithfulness.methods.traced import Method, Outcome, TracedPassage
from lm_audit.errors import UsageError

Vector = NDArray[np.float64]


def method_named(name: str) -> Method:
    """The method of that name; ``UsageError`` suggests the nearest."""
    if name in _TABLE:
        return _TABLE[name]
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(METHODS)}"
    raise UsageError(f"no attribution method {name!r}; {hint}")


def _ifr(explainer: TracedPassage, options: Options) -> Outcome:
    rows = explainer.positions(options.sink) if options.variant == "output_only" else explainer.rows

    def pieces() -> list[Tensor]:
        flow = flow_matrix(explainer.trace, rows, eps=options.eps, threshold=options.threshold)
        return [flow.tokens, flow.heads, flow.residual]

    tokens, heads, residual = explainer.kept("ifr", rows, options.eps, options.threshold).get(pieces)
    matrix = np.full((len(explainer.rows), len(explainer.passage.columns)), np.nan)
    matrix[[row - explainer.rows[0] for row in rows]] = columns_of(explainer, tokens)
    details = {"head_totals": heads.cpu().numpy(), "residual_shares": residual.cpu().numpy()}
    return Outcome(matrix, details=details)


def _ifr_span(explainer: TracedPassage, options: Options) -> Outcome:
    weights = None if options.weights is None else torch.tensor(options.weights)
    rows = explainer.positions(options.sink)

    def pieces() -> list[Tensor]:
        flow = flow_span(explainer.trace, rows, weights, eps=options.eps, threshold=options.threshold)
        return [flow.tokens, flow.heads, torch.tensor(flow.residual, dtype=torch.float64), flow.ffn, flow.ffn_residual]

    kept = explainer.kept("ifr_span", rows, options.weights, options.eps, options.threshold)
    tokens, heads, residual, ffn, ffn_residual = kept.get(pieces)
    vector = columns_of(explainer, tokens)
    details = {
        "head_totals": heads.cpu().numpy(),
        "residual_share": float(residual),
        "ffn_shares": ffn.cpu().numpy(),
        "ffn_residual_shares": ffn_residual.cpu().numpy(),
    }
    return Outcome(copied_rows(explainer, vector, options.sink), vector, details=details)


def _gradient(explainer: TracedPassage, options: Options, *, lrp: bool) -> Outcome:
    kind = "max" if lrp and options.score_mode == "max" else "logit" if lrp else options.objective
    if options.explicit_sink or options.weights is not None:
        rows, weights = explainer.positions(options.sink), _span_weights(options)
        kept = explainer.kept("gradient", rows, weights.tolist(), kind, lrp, options.reduce)
        (span,) = kept.get(
            lambda: [gradient_span(explainer.trace, rows, weights, kind=kind, lrp=lrp, reduce=options.reduce)]
        )
        vector = columns_of(explainer, span)
        return Outcome(copied_rows(explainer, vector, options.sink), vector)
    kept = explainer.kept("gradient", None, None, kind, lrp, options.reduce)
    (full,) = kept.get(
        lambda: [gradient_rows(explainer.trace, explainer.rows, kind=kind, lrp=lrp, reduce=options.reduce)]
    )
    return Outcome(masked_from_token(explainer, columns_of(explainer, full)))


def _span_weights(options: Options) -> Tensor:
    count = options.sink[1] - options.sink[0] + 1
    if options.weights is None:
        return torch.full((count,), 1.0 / count)
    weights = torch.tensor(options.weights)
    return weights / (weights.sum() + 1e-12)


def _integrated(explainer: TracedPassage, options: Options) -> Outcome:
    baseline = baseline_ids(explainer.model.tokenizer, options.baseline, 1)[0]
    whole = not options.explicit_sink and options.weights is None
    rows = explainer.rows if whole else explainer.positions(options.sink)
    weights, kind = None if whole else _span_weights(options), "logit" if options.variant == "logit" else "logprob"
    asked = (rows, None if weights is None else weights.tolist(), kind, baseline, options.points, options.tolerance)
    kept = explainer.kept("integrated_gradients", *asked)

    def pieces() -> list[Tensor]:
        result = integrated_gradients(
            explainer.trace,
            rows,
            baseline,
            weights=weights,
            kind=kind,
            points=options.points,
            tolerance=options.tolerance,
            kept=kept,
        )
        return [result.rows, result.change, result.gap, torch.tensor(result.points)]

    found, change, gap, points = kept.get(pieces, "whole")
    details = {"completeness_gap": gap.cpu().numpy(), "change": change.cpu().numpy(), "points": int(points)}
    scores = columns_of(explainer, found)
    if whole:
        return Outcome(masked_from_token(explainer, scores), details=details)
    return Outcome(copied_rows(explainer, scores[0], options.sink), scores[0], details=details)


def _attention(explainer: TracedPassage, _: Options, *, kind: Any) -> Outcome:
    predicting = [row - 1 for row in explainer.rows]
    (maps,) = explainer.kept("attention", kind.__name__).get(lambda: [kind(explainer.trace, predicting)])
    return Outcome(masked_from_token(explainer, columns_of(explainer, maps)))


def _ablation(explainer: TracedPassage, options: Options, *, clp: bool) -> Outcome:
    name, _, count = (options.variant or "sentences").partition(":")
    plan = (
        sentence_plan(explainer.passage) if name == "sentences" else segment_plan(explainer.passage, int(count or 20))
    )
    perturbations = explainer.perturbations(options.baseline)
    vocabulary = explainer.model.module.get_output_embeddings().weight.shape[0]
    score = partial(concentrated_log_probability, vocabulary=vocabulary) if clp else log_probability
    before = perturbations.sequences
    matrix = ablation_matrix(perturbations, plan, score, means=clp)
    return Outcome(matrix, details={"sequences": perturbations.sequences - before})


def _leave_one_out(explainer: TracedPassage, options: Options) -> Outcome:
    perturbations = explainer.perturbations(options.baseline)
    return Outcome(ablation_matrix(perturbations, token_plan(explainer.passage)))


_TABLE: dict[str, Method] = {
    "ifr": _ifr,
    "ifr_span": _ifr_span,
    "ft_ifr": ft_ifr,
    "flashtrace": flashtrace,
    "attnlrp": partial(_gradient, lrp=True),
    "ft_attnlrp": ft_attnlrp,
    "integrated_gradients": _integrated,
    "input_x_gradient": partial(_gradient, lrp=False),
    "attention": partial(_attention, kind=mean_attention),
    "attention_reference": partial(_attention, kind=cumulative_attention),
    "rollout": partial(_attention, kind=attention_rollout),
    "ablation": partial(_ablation, clp=False),
    "ablation_clp": partial(_ablation, clp=True),
    "leave_one_out": _leave_one_out,
}
