"""What a model can be asked for, and whether it can: cases say what they need, models say what they offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Capability(StrEnum):
    """One thing that an audit may need of a model. The value stands in reports and messages."""

    GENERATE = "generate"
    CONTINUE = "continue text"
    LOGLIKELIHOOD = "prompt log-probabilities"
    NEXT_TOKEN = "next-token distribution"
    GRADIENTS = "gradients"
    HIDDEN_STATES = "hidden states"
    TRAINING = "training"


MEANINGS: Mapping[Capability, str] = {
    Capability.GENERATE: "answers a prompt",
    Capability.CONTINUE: "continues a text as it stands, outside any chat template",
    Capability.LOGLIKELIHOOD: "the log-probability of every token of a given text",
    Capability.NEXT_TOKEN: "the probability of every token that may come next",
    Capability.GRADIENTS: "derivatives of its outputs",
    Capability.HIDDEN_STATES: "what its layers compute",
    Capability.TRAINING: "weights that can be trained on",
}
"""What each capability means, for whoever reads a table of them."""


@dataclass(frozen=True)
class Offer:
    """Whether a model has a capability, and by what or why not."""

    has: bool
    why: str


Offers = Mapping[Capability, Offer]

EVERYTHING: Offers = {capability: Offer(True, "weights on this machine") for capability in Capability}
"""What a model offers whose weights are here."""


def missing(needs: Iterable[Capability], offers: Offers) -> str | None:
    """Which of ``needs`` a model does not offer and why, in words; ``None`` where it offers all."""
    told = [f"{need} ({offers[need].why})" for need in needs if not offers[need].has]
    return ", ".join(told) or None
