"""A causal language model with its tokenizer: what every audit is given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from lm_audit.errors import UsageError
from lm_audit.models.capabilities import EVERYTHING, Offers
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.checks.proofs import Proofs
from lm_audit.models.context import context_window
from lm_audit.models.loading.evaluating import evaluating
from lm_audit.models.loading.placement import embedding_device, places
from lm_audit.models.loading.rotation import forget_longer_texts
from lm_audit.models.scoring.boundary import TextSplitter
from lm_audit.models.scoring.engine import ScoringEngine
from lm_audit.models.scoring.limits import is_out_of_memory
from lm_audit.models.scoring.requests import Bos, Request
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.text.chat import ChatSettings, ChatTemplate, Messages
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.progress import OnProgress

if TYPE_CHECKING:
    from lm_audit.models.endpoint.traffic import Traffic
    from lm_audit.models.generation.continuation import Generation
    from lm_audit.models.generation.in_slots.slot_check import Slots
    from lm_audit.models.generation.shared_prefix import Completion
    from lm_audit.models.generation.stepping import Stepping
    from lm_audit.models.text.thought_markers import ThoughtMarkers

_LOG = logging.getLogger(__name__)


class LanguageModel:
    """Any ``transformers`` causal language model, its tokenizer, and the two things audits ask of it.

    ``on_progress(done, total, tokens)`` is called while ``loglikelihood`` and ``generate`` work: requests done,
    requests in the call, tokens that the model has read for it so far. ``chat_settings`` (arguments of its chat
    template, room for its thought) hold wherever the model is asked in its chat template. ``quantised_by`` says by what
    its weights were quantised, ``None`` where they were not. ``packed_weights``: whether long calls on a CPU lay its
    weights out once more (:mod:`lm_audit.models.kernels.packed_weights`); ``None``: where that pays and memory is free.
    ``told``: what was warned of when it loaded, or since.
    """

    def __init__(self, module: CausalModule, tokenizer: Tokenizer, *, name: str, fingerprint: str | None = None):
        self.module = module
        self.tokenizer = tokenizer
        self.name = name
        self.on_progress: OnProgress | None = None
        self.chat_settings = ChatSettings()
        self.quantised_by: str | None = None
        self.told: tuple[str, ...] = ()
        self.packed_weights: bool | None = None
        self._batch_tokens: int | None = None
        self._fingerprint = fingerprint
        if module is not None:
            forget_longer_texts(module)

    @property
    def offers(self) -> Offers:
        """What it can be asked for: everything, since its weights are here."""
        return EVERYTHING

    @property
    def takes_token_ids(self) -> bool:
        """Whether a prompt may be given as token ids."""
        return True

    @property
    def counts_tokens(self) -> bool:
        """Whether its tokenizer is the model's own, so that lengths are exact."""
        return True

    def provenance(self) -> dict[str, Any]:
        """What else there is to say of where its answers come from; nothing of a model on this machine."""
        return {}

    @property
    def traffic(self) -> Traffic | None:
        """What was asked of its server so far; ``None`` of a model on this machine."""
        return None

    @property
    def context_window(self) -> int | None:
        """Tokens that it reads, ``None`` where nothing bounds them."""
        return context_window(self.module.config)

    @property
    def device(self) -> torch.device:
        """Where the input embeddings lie, and where texts go in and scores come out."""
        return embedding_device(self.module)

    @property
    def places(self) -> dict[str, int]:
        """How many of its parts lie on each device, where they were spread; empty for a model on one device."""
        return places(self.module)

    @property
    def batch_tokens(self) -> int | None:
        """The most tokens that a pass of several texts reads (padding included); ``None``: what suits the device.

        A single text that is longer is still read as a whole. Results are the same whatever it is.
        """
        return self._batch_tokens

    @batch_tokens.setter
    def batch_tokens(self, most: int | None) -> None:
        if most is not None and most < 1:
            raise UsageError(f"batch_tokens is {most}; it must be at least 1")
        if most != self._batch_tokens:
            self.__dict__.pop("_engine", None)  # its limits are those of before
        self._batch_tokens = most

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        dtype: torch.dtype = self.module.dtype
        return dtype

    @property
    def fingerprint(self) -> str:
        """A hash of weights and tokenizer, whatever path they came from."""
        if self._fingerprint is None:
            from lm_audit.models.loading.identity.fingerprint import module_fingerprint

            self._fingerprint = module_fingerprint(self.module, self.tokenizer)
        return self._fingerprint

    @property
    def known_fingerprint(self) -> str | None:
        """The fingerprint where it is known without reading all weights: of a model that came from files."""
        return self._fingerprint

    @property
    def chat_template(self) -> ChatTemplate:
        """The chat template with the arguments of ``chat_settings``; ``UsageError`` where the tokenizer has none."""
        return ChatTemplate(self.tokenizer, self.chat_settings.arguments, name=self.name)

    def render_chat(self, messages: str | Messages, *, answering: bool = False) -> str:
        """A conversation (or one user's turn) in the chat template, up to where the model's turn begins.

        ``answering``: up to where its answer begins; a thought that the template opens is closed without a word in it.
        """
        turns: Messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return self.chat_template.opening(turns) if answering else self.chat_template.render(turns)

    @cached_property
    def _engine(self) -> ScoringEngine:
        return ScoringEngine(self)

    @cached_property
    def stepping(self) -> Stepping:
        """How rows are continued together, found on first use."""
        from lm_audit.models.generation.stepping import Stepping, find_stepping

        proofs = Proofs(self)
        known = proofs.get("stepping")
        if isinstance(known, str) and known in Stepping.__members__:
            return Stepping[known]
        found = find_stepping(self.module, self.device)
        proofs.put("stepping", found.name)
        return found

    @cached_property
    def slots(self) -> Slots | None:
        """The model over preallocated keys and values, found on first use; ``None`` where it cannot be decoded so."""
        from lm_audit.models.generation.in_slots.slot_check import find_slots

        proofs = Proofs(self)
        known = proofs.get("slots")
        try:
            with evaluating(self.module):
                slots = find_slots(self.module, self.device, proven=known if isinstance(known, bool) else None)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            _LOG.warning("%s is decoded by the plain loop: memory ran out while slots were tried", self.name)
            return None
        proofs.put("slots", slots is not None)
        return slots

    @property
    def text_splitter(self) -> TextSplitter:
        """What splits the texts of a request into tokens of its prefix and of its target."""
        return self._engine.splitter

    def loglikelihood(
        self,
        requests: Sequence[Request],
        *,
        bos: Bos = "default",
        stats: bool = False,
        top: bool = False,
        repetition_penalty: float = 1.0,
    ) -> list[TokenScores]:
        """Log-probability (nats) and rank of every target token of every request, in the order of the requests.

        A request is ``(prefix, target)``, each text or token ids. Two texts are tokenised as one string: trailing white
        space of the prefix moves to the target, and a token that spans the boundary belongs to the target. Where one is
        ids, the other is tokenised by itself. ``bos``: "default" (what the tokenizer itself adds), "none", or a token
        id; it is never put before a sequence that already begins with it. ``top`` also finds the most likely token at
        the first scored position, under a repetition penalty (above 0, 1 = none) on the tokens before it, as
        ``generate`` of ``transformers`` would; log-probabilities and ranks are never penalised. A result does not
        depend on what else is in the call (float32: 1e-4). Raises DataError for a request that does not fit the model
        (longer than its context window), UsageError for one of the wrong form, ModelError where the model answers with
        NaN or Inf, or memory does not hold one sequence.
        """
        if not repetition_penalty > 0:
            raise UsageError(f"repetition_penalty is {repetition_penalty}; it must be above 0, where 1 means none")
        return self._engine.score(requests, bos=bos, stats=stats, top_penalty=repetition_penalty if top else None)

    def next_token_log_mass(
        self, requests: Sequence[Request], token_ids: Sequence[int] | NDArray[np.int64], *, bos: Bos = "default"
    ) -> NDArray[np.float64]:
        """Log of the probability (nats, float64) that the token after each request's target is one of ``token_ids``.

        Requests and ``bos`` are as for :meth:`loglikelihood`; an empty target asks about what follows the prefix.
        Raises what :meth:`loglikelihood` raises, and DataError for a request that is empty and has no BOS.
        """
        return self._engine.log_mass(requests, np.asarray(token_ids, dtype=np.int64), bos=bos)

    def generate(
        self,
        prompts: Sequence[str | Sequence[int]],
        *,
        max_new_tokens: int,
        stop: Sequence[str] = (),
        temperature: float = 0.0,
        seed: int = 0,
        chat: bool = False,
        thinking_tokens: int | None = None,
    ) -> list[Generation]:
        """Each prompt continued, greedy by default; see :func:`lm_audit.models.generation.continuation.generate`."""
        from lm_audit.models.generation.continuation import generate

        return generate(
            self,
            prompts,
            max_new_tokens=max_new_tokens,
            stop=stop,
            temperature=temperature,
            seed=seed,
            chat=chat,
            thinking_tokens=thinking_tokens,
        )

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        max_new_tokens: int,
        enough: Callable[[int, str], bool] | None = None,
        opened: Sequence[ThoughtMarkers | None] | None = None,
        thinking_tokens: int | None = None,
    ) -> list[Completion]:
        """Greedy answers to long prompts; see :func:`lm_audit.models.generation.shared_prefix.complete`."""
        from lm_audit.models.generation.shared_prefix import complete

        return complete(
            self,
            prompts,
            targets,
            max_new_tokens=max_new_tokens,
            enough=enough,
            opened=opened,
            thinking_tokens=thinking_tokens,
        )

    def __repr__(self) -> str:
        return f"LanguageModel({self.name!r}, {self.device}, {self.dtype})"
