"""The embedded model behind the two ways in which servers give log-probabilities of a prompt; its weights are real."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast

from lm_audit.models import LanguageModel
from tests.endpoint.servers.made_server import Body, Made, made_server

Way = Literal["prompt_logprobs", "echo"]
T = TypeVar("T")

LOCK = threading.Lock()
ANSWERED: dict[tuple[Any, ...], Any] = {}
"""What a model has answered: every server that is made of it is asked the same before anything else."""


class Scoring:
    """Answers completions of text or ids, greedily; with ``way`` it scores the prompt. A request of one token gets
    " the", whatever the model says, since such requests ask for scores.
    """

    def __init__(self, model: LanguageModel, way: Way) -> None:
        self.model = model
        self.way = way

    def answer(self, route: str, body: Body) -> Body:
        """What vLLM (``prompt_logprobs``) or an older completions API (``echo``) says."""
        prompt = body["prompt"] if "prompt" in body else body["messages"][-1]["content"]
        tokenizer = self.model.tokenizer
        ids = list(prompt) if isinstance(prompt, list) else list(tokenizer(prompt)["input_ids"])
        written, text = 1, " the"
        if body.get("max_tokens", 1) > 1:
            written, text = self._written(ids, body["max_tokens"], body.get("stop", ()))
        choice: Body = {"index": 0, "finish_reason": "length", "text": text, "logprobs": None}
        if "messages" in body:
            choice = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": text}}
        if self.way == "prompt_logprobs" and "prompt_logprobs" in body:
            choice["prompt_logprobs"] = self._by_id(ids)
        elif self.way == "echo" and body.get("echo"):
            choice["logprobs"] = self._echoed(ids, text)
        usage = {"prompt_tokens": len(ids), "completion_tokens": written, "total_tokens": len(ids) + written}
        return {"id": "1", "model": "made", "system_fingerprint": None, "choices": [choice], "usage": usage}

    def tokenize(self, route: str, body: Body) -> Body:
        """vLLM's route."""
        tokenizer, text = self.model.tokenizer, body.get("prompt")
        if text is None:  # a conversation
            text = self.model.render_chat(body["messages"])
        ids = list(tokenizer(text, add_special_tokens="prompt" in body and body["add_special_tokens"])["input_ids"])
        strings = tokenizer.convert_ids_to_tokens(ids) if body.get("return_token_strs") else None
        return {"tokens": ids, "count": len(ids), "max_model_len": 2048, "token_strs": strings}

    def detokenize(self, route: str, body: Body) -> Body:
        """vLLM's route."""
        return {"prompt": self.model.tokenizer.decode(body["tokens"])}

    def _scores(self, ids: list[int]) -> list[tuple[int, float, int]]:
        """Of every token but the first: its id, log-probability and rank."""

        def scored() -> list[tuple[int, float, int]]:
            [score] = self.model.loglikelihood([(ids[:1], ids[1:])], bos="none")
            return list(zip(ids[1:], map(float, score.logprobs), map(int, score.ranks), strict=True))

        return self._once(("scores", *ids), scored)

    def _written(self, ids: list[int], most: int, stop: Sequence[str]) -> tuple[int, str]:
        """How many tokens were written, and what they say."""

        def written() -> tuple[int, str]:
            [done] = self.model.generate([ids], max_new_tokens=most, stop=stop)
            return len(done.token_ids), done.text

        return self._once(("text", *ids, most, *stop), written)

    def _once(self, asked: tuple[Any, ...], ask: Callable[[], T]) -> T:
        with LOCK:
            key = (self.model.fingerprint, *asked)
            if key not in ANSWERED:
                ANSWERED[key] = ask()
            return cast(T, ANSWERED[key])

    def _by_id(self, ids: list[int]) -> list[Any]:
        decode = self.model.tokenizer.decode
        return [
            None,
            *(
                {str(number): {"logprob": own, "rank": rank + 1, "decoded_token": decode([number])}}
                for number, own, rank in self._scores(ids)
            ),
        ]

    def _echoed(self, ids: list[int], text: str) -> Body:
        decode, scores = self.model.tokenizer.decode, self._scores(ids)
        best: list[Any] = [None]
        for number, own, rank in scores:
            name = decode([number])
            best.append({name: own} if rank == 0 else {"~": math.log1p(-math.exp(own)), name: own})
        values = [None, *(own for _, own, _ in scores), -1.0]
        tokens = [*(decode([number]) for number in ids), text]
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": [*best, {text: -1.0}]}


@contextmanager
def scoring_server(model: LanguageModel, way: Way) -> Iterator[Made]:
    """The running server."""
    scoring = Scoring(model, way)
    routes = {"/tokenize": scoring.tokenize, "/detokenize": scoring.detokenize}
    with made_server(scoring.answer, routes=routes) as made:
        yield made
