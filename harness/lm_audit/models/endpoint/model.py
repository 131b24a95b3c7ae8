"""A model behind a server, with the interface of one that is here, as far as the server serves it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from lm_audit.errors import ContextError, ModelError, UsageError, beyond_context
from lm_audit.models.capabilities import Capability, Offers
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.endpoint.bodies import chat_body, own_seed, text_body
from lm_audit.models.endpoint.client.client import Client
from lm_audit.models.endpoint.client.questions import Question, Reply
from lm_audit.models.endpoint.exchanges import Exchanges, provenance_of
from lm_audit.models.endpoint.facts import EndpointFacts
from lm_audit.models.endpoint.replies import finish_of, text_and_reasoning
from lm_audit.models.endpoint.scores import request_of, scored_tokens
from lm_audit.models.endpoint.traffic import Traffic
from lm_audit.models.generation.continuation import Generation
from lm_audit.models.generation.shared_prefix import Completion, Enough
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.scoring.boundary import TextSplitter
from lm_audit.models.scoring.requests import Bos, Encoded, Request, RequestEncoder, check_sizes
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.text.prompts import Prompt
from lm_audit.models.text.thought_markers import ThoughtMarkers
from lm_audit.models.text.tokenizer import Tokenizer

DEVICE = "endpoint"
"""What stands in place of a device in case ids."""


class EndpointModel(LanguageModel):
    """A model that is asked over the network.

    What needs its weights (``module``, gradients, hidden states, training) raises ``ModelError`` that names the missing
    capability; audits that declare their needs are never given it. Sampled answers are seeded by the call's seed, the
    prompt and how often it occurred before, as far as the server heeds a seed.
    """

    def __init__(self, client: Client, facts: EndpointFacts, tokenizer: Tokenizer, *, name: str):
        self.client = client
        self.facts = facts
        client.reported = facts.reported
        self._exchanges = Exchanges(client, facts, name)
        no_module: Any = None
        super().__init__(no_module, tokenizer, name=name, fingerprint=facts.digest)

    def __setattr__(self, name: str, value: object) -> None:
        """``module`` is a property here, which the base class's ``__init__`` must not set."""
        if name != "module":
            super().__setattr__(name, value)

    @property
    def module(self) -> CausalModule:  # type: ignore[override]  # nobody writes it: see __setattr__
        """There is none."""
        self._lacks(Capability.HIDDEN_STATES)

    @property
    def device(self) -> Any:
        """The word ``endpoint``."""
        return DEVICE

    @property
    def places(self) -> dict[str, int]:
        """Nothing is known of where its parts lie."""
        return {}

    @property
    def dtype(self) -> Any:
        """Whatever the server computes in, which it does not tell."""
        return "the server's"

    @property
    def offers(self) -> Offers:
        """What asking the server has shown."""
        return self.facts.offers

    @property
    def context_window(self) -> int | None:
        """Tokens of a request, answer included, as far as the server tells."""
        return self.facts.context

    @property
    def takes_token_ids(self) -> bool:
        """Whether completions of token ids are to be had."""
        return self.facts.takes_ids and self.counts_tokens and self.facts.completions

    @property
    def counts_tokens(self) -> bool:
        """Whether the server's tokenizer is known."""
        return self.facts.tokenizer is not None

    @property
    def text_splitter(self) -> TextSplitter:
        """What splits the texts of a request into tokens of its prefix and of its target."""
        return self._encoder.splitter

    @cached_property
    def _encoder(self) -> RequestEncoder:
        if not self.counts_tokens:
            self._lacks(Capability.LOGLIKELIHOOD)
        return RequestEncoder(self.tokenizer)

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        max_new_tokens: int,
        stop: Sequence[str] = (),
        temperature: float = 0.0,
        seed: int = 0,
        chat: bool = False,
        thinking_tokens: int | None = None,
    ) -> list[Generation]:
        """One continuation a prompt, as ``lm_audit.models.generation.continuation.generate`` has it.

        With ``chat`` the server's own template is used. A server cannot be made to close a thought: where the model
        thinks, its thought has room for ``thinking_tokens`` beside ``max_new_tokens``, and a reply that uses all of it
        up inside the thought has no answer. Raises ``ModelError`` for a route that the server does not have, and where
        the tokens of a prompt are other than its tokenizer counts, ``ContextError`` for one that is longer than its
        context, where its tokens are counted here.
        """
        if chat and thinking_tokens is None:
            thinking_tokens = self.chat_settings.thinking_tokens
        if chat and not self.facts.chat:
            raise UsageError(f"{self.name}: {self.facts.chat_why or 'no chat route'}; nothing can be asked in a chat")
        if not chat and not self.facts.completions:
            self._lacks(Capability.CONTINUE)
        if max_new_tokens == 0:
            return [Generation("", (), "length") for _ in prompts]
        room = max_new_tokens + ((thinking_tokens or 0) if chat and self.facts.thinks else 0)
        settings: dict[str, Any] = {"max_tokens": room, "temperature": temperature}
        if stop:
            settings["stop"] = list(stop)
        seen: Counter[str] = Counter()
        questions: list[Question] = []
        counts: list[int | None] = []
        for prompt in prompts:
            body, count = (chat_body(prompt, self.chat_settings.arguments), None) if chat else self._text_body(prompt)
            if count is not None and self._window is not None and count > self._window:
                what = f"prompt {len(questions)}"
                raise ContextError(beyond_context(what, count + 1, self.name, self._window + 1, "shorten it"))
            key = json.dumps(body, sort_keys=True)
            number, own = seen[key], {}
            seen[key] += 1
            if temperature > 0:
                own["seed"] = own_seed(seed, number, key)
            route: Any = "chat/completions" if chat else "completions"
            questions.append(Question(route, body | settings | own, number if temperature > 0 else 0))
            counts.append(count)
        replies = self._ask(questions, counts, repeatable=temperature == 0)
        return [self._generation(reply) for reply in replies]

    def complete(
        self,
        prompts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        max_new_tokens: int,
        enough: Enough | None = None,
        opened: Sequence[ThoughtMarkers | None] | None = None,
        thinking_tokens: int | None = None,
    ) -> list[Completion]:
        """As :func:`lm_audit.models.generation.shared_prefix.complete`; targets are scored where prompts can be.

        ``enough`` is not asked: a server answers in one piece.
        """
        if not self.facts.completions:
            self._lacks(Capability.CONTINUE)
        questions = []
        for number, ids in enumerate(prompts):
            room = max_new_tokens + ((thinking_tokens or 0) if opened and opened[number] is not None else 0)
            body, _ = self._text_body(ids)
            questions.append(Question("completions", body | {"max_tokens": room, "temperature": 0.0}))
        replies = self._ask(questions, [len(ids) for ids in prompts], repeatable=True)
        scores: list[TokenScores | None] = [None] * len(prompts)
        if self.offers[Capability.LOGLIKELIHOOD].has:
            wanted = [number for number, target in enumerate(targets) if len(target)]
            found = self.loglikelihood([(list(prompts[n]), list(targets[n])) for n in wanted], bos="none")
            for number, one in zip(wanted, found, strict=True):
                scores[number] = one
        done = []
        for reply, score in zip(replies, scores, strict=True):
            text, _ = text_and_reasoning(reply.choice)
            finish: Literal["eos", "length"] = "length" if finish_of(reply.choice) == "length" else "eos"
            done.append(Completion(text, self._ids(text), finish, score))
        return done

    def loglikelihood(
        self,
        requests: Sequence[Request],
        *,
        bos: Bos = "default",
        stats: bool = False,
        top: bool = False,
        repetition_penalty: float = 1.0,
    ) -> list[TokenScores]:
        """As :meth:`LanguageModel.loglikelihood`, where the server gives exact log-probabilities of a prompt.

        A rank is -1 where it is only known not to be 0. ``stats`` and a penalty need the whole distribution and raise
        ``ModelError``; ``top`` needs the two likeliest tokens by their ids.
        """
        way = self.facts.prompt_scores
        if way is None or not self.counts_tokens:
            self._lacks(Capability.LOGLIKELIHOOD)
        if stats or top or repetition_penalty != 1.0:
            self._lacks(Capability.NEXT_TOKEN)
        encoded = self._encoder.encode(requests, bos)
        check_sizes(encoded, window=self._window, vocabulary=None, name=self.name)
        asked = [index for index, item in enumerate(encoded) if item.inputs]
        questions = [self._scoring_question(encoded[index], request_of(way)) for index in asked]
        replies = self._ask(questions, [len(encoded[index].ids) for index in asked])
        found = dict(zip(asked, replies, strict=True))
        return [self._scores(item, found.get(index)) for index, item in enumerate(encoded)]

    def next_token_log_mass(
        self, requests: Sequence[Request], token_ids: Sequence[int] | NDArray[np.int64], *, bos: Bos = "default"
    ) -> NDArray[np.float64]:
        """A server tells the likeliest tokens alone: what others weigh together is not estimable."""
        self._lacks(Capability.NEXT_TOKEN)

    def provenance(self) -> dict[str, Any]:
        """What answered, by which settings, and what it has cost this process so far."""
        return provenance_of(self.client, self.facts, self._exchanges.repeats)

    @property
    def traffic(self) -> Traffic:
        """What was asked so far."""
        client = self.client
        tokens = client.prompt_tokens + client.answer_tokens
        return Traffic(client.asked, client.kept.found, tokens, client.retries, client.seconds)

    def close(self) -> None:
        """Close connections and files."""
        self.client.close()

    @property
    def _window(self) -> int | None:
        # A server wants room for one token that it generates.
        return None if self.facts.context is None else self.facts.context - 1

    def _text_body(self, prompt: Prompt) -> tuple[dict[str, Any], int | None]:
        return text_body(prompt, self.facts, self.tokenizer, self.name)

    def _scoring_question(self, item: Encoded, ask: dict[str, Any]) -> Question:
        body, _ = self._text_body([int(one) for one in item.ids])
        return Question("completions", body | ask)

    def _scores(self, item: Encoded, reply: Reply | None) -> TokenScores:
        first = item.first_scored
        if reply is None:
            none = np.zeros(0)
            return TokenScores(item.ids[first:], none, none.astype(np.int64), True, item.merged)
        assert self.facts.prompt_scores is not None
        ids = [int(one) for one in item.ids]
        found = scored_tokens(reply, self.facts.prompt_scores, who=f"model {self.name}", ids=ids)
        ranks = np.array(found.ranks[first - 1 :], dtype=np.int64)
        return TokenScores(
            token_ids=item.ids[first:],
            logprobs=np.array(found.logprobs[first - 1 :], dtype=np.float64),
            ranks=ranks,
            greedy=bool((ranks == 0).all()),
            boundary_merged=item.merged,
        )

    def _ask(
        self, questions: Sequence[Question], counts: Sequence[int | None], *, repeatable: bool = False
    ) -> list[Reply]:
        return self._exchanges.ask(questions, counts, repeatable=repeatable, progress=self.on_progress)

    def _generation(self, reply: Reply) -> Generation:
        text, reasoning = text_and_reasoning(reply.choice)
        return Generation(
            text,
            self._ids(text),
            finish_of(reply.choice),
            reasoning=reasoning,
            prompt_tokens=reply.prompt_tokens,
        )

    def _ids(self, text: str) -> tuple[int, ...]:
        if not self.counts_tokens or not text:
            return ()
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _lacks(self, capability: Capability) -> NoReturn:
        raise ModelError(f"model {self.name} does not offer {capability}: {self.facts.offers[capability].why}")

    def __repr__(self) -> str:
        return f"EndpointModel({self.name!r}, {self.client.url})"
