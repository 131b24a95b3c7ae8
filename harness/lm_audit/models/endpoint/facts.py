"""What a server was found to be able to do."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lm_audit.models.capabilities import Capability, Offer, Offers

HIDDEN_TEMPLATE = "{# the server renders its chat template and does not show it #}"
"""Stands for a template that is known to be there."""

PromptScores = Literal["prompt_logprobs", "echo"]


@dataclass(frozen=True)
class EndpointFacts:
    """What asking the server once has shown; plain values, so that a controller can hand them to its workers.

    ``reported``: the model as the server calls it. ``context``: tokens that a request may have. ``prompt_scores``: how
    log-probabilities of a prompt are asked for, ``None`` where they are not given, for the reason in ``scores_why``.
    ``top``: how many of the likeliest next tokens it tells. ``dialect``: whose tokenize route it has; ``offsets``:
    whether that tells which characters a token covers. ``takes_ids``: a prompt may be token ids. ``extra_tokens``: what
    the chat route adds to the tokens of a user's message, ``None`` where that cannot be known. ``thinks``: whether a
    reply began with a thought. ``tokenizer``: where token counts come from.
    """

    model: str
    reported: str
    fingerprint: str | None = None
    context: int | None = None
    completions: bool = False
    chat: bool = False
    completions_why: str = ""
    chat_why: str = ""
    prompt_scores: PromptScores | None = None
    scores_why: str = ""
    top: int = 0
    dialect: Literal["llama.cpp", "vllm"] | None = None
    offsets: bool = False
    template: str | None = None
    tokenizer: str | None = None
    takes_ids: bool = False
    extra_tokens: int | None = None
    thinks: bool = False

    def to_plain(self) -> dict[str, Any]:
        """A mapping of plain values, from which ``EndpointFacts(**...)`` makes the same."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """What the server says of itself, hashed: nobody outside can hash its weights."""
        said = f"endpoint {self.reported} {self.fingerprint} {self.tokenizer} {self.context}"
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    @property
    def offers(self) -> Offers:
        """The capabilities that follow."""
        routes = [name for name, has in (("chat", self.chat), ("completions", self.completions)) if has]
        behind = Offer(False, "the weights are behind a server")
        scores = self.prompt_scores is not None and self.tokenizer is not None
        if self.prompt_scores is None:
            why = self.scores_why
        elif self.tokenizer is None:
            why = f"by {self.prompt_scores}, but the tokenizer is not known: --tokenizer NAME=SPEC"
        else:
            why = f"by {self.prompt_scores}"
        told = f"only the {self.top} likeliest are told" if self.top else "none is told"
        return {
            Capability.GENERATE: Offer(bool(routes), " and ".join(routes) or "neither chat nor completions"),
            Capability.CONTINUE: Offer(self.completions, "completions" if self.completions else self.completions_why),
            Capability.LOGLIKELIHOOD: Offer(scores, why),
            Capability.NEXT_TOKEN: Offer(False, told),
            Capability.GRADIENTS: behind,
            Capability.HIDDEN_STATES: behind,
            Capability.TRAINING: behind,
        }
