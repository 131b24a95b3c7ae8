"""Does a model refuse more often when a request names one group rather than another?"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.bias.lexicon import SLOT, Axis
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.stats import Estimate, bootstrap_ci, holm, mcnemar_exact, share, share_difference

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel


@dataclass(frozen=True)
class RefusalSet:
    """Requests with a group slot, the axes to fill it with, and what a refusal begins with."""

    requests: tuple[str, ...]
    axes: tuple[Axis, ...]
    openers: tuple[str, ...]
    refusing: str
    compliant: str

    def is_refusal(self, reply: str) -> bool:
        """Whether a reply begins with one of the openers, whatever its case, quotes and apostrophes."""
        start = reply.strip().lstrip("\"'*“‘ ").replace("’", "'").casefold()
        return any(start.startswith(opener.casefold()) for opener in self.openers)


def load_refusal_set(path: str | Path) -> RefusalSet:
    """The set in a TOML file; ``DataError`` names a missing key or a request without its slot."""
    path = Path(path)
    document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    missing = [key for key in ("requests", "axes", "openers", "refusing", "compliant") if key not in document]
    if missing:
        raise DataError(f"lacks {missing}", file=path)
    for row, request in enumerate(document["requests"], start=1):
        if request.count(SLOT) != 1:
            raise DataError(f"{request!r} must hold {SLOT} once", file=path, row=row, field="requests")
    axes = tuple(Axis.of(axis["name"], axis["groups"]) for axis in document["axes"])
    return RefusalSet(
        tuple(document["requests"]), axes, tuple(document["openers"]), document["refusing"], document["compliant"]
    )


def refusal_rates(
    model: LanguageModel,
    refusals: RefusalSet,
    axis: Axis,
    *,
    max_new_tokens: int = 16,
    n_seeds: int = 1,
    temperature: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evidence:
    """Refusal rate of each group of an axis (percent, requests as clusters), and the largest difference between two.

    Each request is asked about each group in the model's chat template, greedily or ``n_seeds`` times at a temperature.
    Beside the rate stands the lean, log p(refusing opener) - log p(compliant opener) in nats, which moves long before
    the rate does. Differences are paired by request; Holm over the pairs of groups.
    """
    prompts = [request.replace(SLOT, group) for request in refusals.requests for group in axis.groups]
    refused = np.zeros((len(refusals.requests), len(axis.groups), n_seeds))
    replies: list[list[str]] = []
    for draw in range(n_seeds):
        generated = model.generate(
            prompts, max_new_tokens=max_new_tokens, temperature=temperature, seed=seed + draw, chat=True
        )
        replies.append([generation.text for generation in generated])
        answers = [refusals.is_refusal(reply) for reply in replies[-1]]
        refused[:, :, draw] = np.array(answers, dtype=float).reshape(refused.shape[:2])
    lean = _lean(model, refusals, prompts).reshape(refused.shape[:2])
    evidence = Evidence("bias", headline="bias.refusal_max_difference")
    evidence.parameters.update(
        {
            "axis": axis.name,
            "requests": len(refusals.requests),
            "draws": n_seeds,
            "temperature": temperature,
            "seed": seed,
        }
    )
    _record(evidence, axis, refused, lean, confidence, seed)
    evidence.extend_rows(_rows(refusals, axis, prompts, replies, refused, lean))
    return evidence


def _lean(model: LanguageModel, refusals: RefusalSet, prompts: Sequence[str]) -> np.ndarray:
    rendered = [model.render_chat(prompt, answering=True) for prompt in prompts]
    requests = [(text, opener) for text in rendered for opener in (refusals.refusing, refusals.compliant)]
    # The template already writes whatever the model's turns begin with.
    scores = model.loglikelihood(requests, bos="none")
    return np.array([first.total - second.total for first, second in zip(scores[::2], scores[1::2], strict=True)])


def _record(
    evidence: Evidence, axis: Axis, refused: np.ndarray, lean: np.ndarray, confidence: float, seed: int
) -> None:
    for g, group in enumerate(axis.groups):
        # Draws of one request hang together: the requests are the independent answers.
        drawn = np.repeat(np.arange(refused.shape[0]), int(refused[:, g].size) // refused.shape[0])
        found = share(np.asarray(refused[:, g], dtype=np.float64).ravel(), drawn, scale=100, confidence=confidence)
        evidence.metric(f"bias.refusal_rate.{group}", found)
    pairs = list(combinations(range(len(axis.groups)), 2))
    tests = [mcnemar_exact(refused[:, a].ravel(), refused[:, b].ravel()).value for a, b in pairs]
    widest, p_value = None, None
    for (a, b), adjusted in zip(pairs, holm(tests), strict=True):
        label = f"{axis.groups[b]}|{axis.groups[a]}"
        difference = _difference(refused[:, a], refused[:, b], confidence, seed)
        fields: dict[str, Any] = {"unit": "percentage points", "better": "target:0", "chance": 0.0}
        note = f"McNemar, Holm-adjusted: p = {adjusted:.3g}" if adjusted is not None else None
        difference = replace(difference, **fields, note=difference.note or note)
        evidence.metric(f"bias.refusal_difference.{label}", difference)
        shift = bootstrap_ci(lean[:, b] - lean[:, a], confidence=confidence, n_resamples=2000, seed=seed)
        evidence.metric(f"bias.refusal_lean.{label}", replace(shift, unit="nats", better="target:0", chance=0.0))
        if widest is None or abs(difference.value or 0) > abs(widest.value or 0):
            widest, p_value = difference, adjusted
    if widest is not None:
        note = None if p_value is None else f"the widest of {len(pairs)} differences, Holm-adjusted p = {p_value:.3g}"
        evidence.metric("bias.refusal_max_difference", replace(widest, note=note))


def _difference(first: np.ndarray, second: np.ndarray, confidence: float, seed: int) -> Estimate:
    """Rate of the second group minus the first in percentage points, paired by request.

    Where no request tells the groups apart there is no spread to resample; two independent shares then bound it.
    """
    by_request = 100 * (second.mean(axis=1) - first.mean(axis=1))
    if np.ptp(by_request) > 0:
        return bootstrap_ci(by_request, confidence=confidence, n_resamples=2000, method="percentile", seed=seed)
    share = share_difference(int(first.sum()), first.size, int(second.sum()), second.size, confidence)
    limits = {name: 100 * value for name in ("value", "low", "high") if (value := getattr(share, name)) is not None}
    return replace(share, **limits)


def _rows(
    refusals: RefusalSet,
    axis: Axis,
    prompts: Sequence[str],
    replies: Sequence[Sequence[str]],
    refused: np.ndarray,
    lean: np.ndarray,
) -> list[dict[str, Any]]:
    rows = []
    for number, prompt in enumerate(prompts):
        r, g = divmod(number, len(axis.groups))
        rows.append(
            {
                "item": f"{axis.name} | {refusals.requests[r]} | {axis.groups[g]}",
                "group": axis.groups[g],
                "prompt": prompt,
                "reply": replies[0][number],
                "refusal_rate": float(refused[r, g].mean()),
                "lean": float(lean[r, g]),
            }
        )
    return rows
