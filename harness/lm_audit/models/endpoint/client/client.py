"""Requests to a server by the official ``openai`` client: many in flight, retried by it, each answer kept at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lm_audit.errors import HarnessError, ServerError
from lm_audit.models.endpoint.address import Address
from lm_audit.models.endpoint.client.budget import Budget
from lm_audit.models.endpoint.client.kept import KeptAnswers
from lm_audit.models.endpoint.client.pacing import Pacer
from lm_audit.models.endpoint.client.questions import Question, Reply
from lm_audit.models.endpoint.client.transport import Transport, message_of, retries_of
from lm_audit.models.endpoint.settings import EndpointSettings

OnAnswer = Callable[[int, Reply], None]

_USUAL_ENDS = (None, "stop", "length", "eos", "eos_token", "max_tokens", "stop_sequence")
_OTHER_ENDS = ("content_filter", "tool_calls", "function_call", "abort", "error")
"""Ends of answers that are not the model's own: they are counted, for what was said then is not what it would say."""


class Client:
    """One server and one model of it.

    Raises ``UsageError`` for a package that is not installed, an address that may not be used, a wrong key or model;
    ``ServerError`` for a server that is not there, does not answer in time, or answers what no model would;
    ``BudgetError`` where the tokens are spent. Whatever was answered by then is kept.
    """

    def __init__(self, address: Address, settings: EndpointSettings):
        self.address = address
        self.settings = settings
        self._transport = Transport(address, settings)
        self.url = self._transport.url
        self.kept = KeptAnswers(settings.folder, settings.writer, settings.reuse)
        self.budget = Budget(settings.budget, settings.folder, settings.writer)
        self.reported: str | None = None
        self.fingerprints: set[str] = set()
        self.ends: Counter[str] = Counter()
        self.asked = self.retries = self.prompt_tokens = self.answer_tokens = self.uncounted = 0
        self.seconds = 0.0
        self._pacer = Pacer(settings.concurrency)

    # What the harness asks.

    def ask(
        self, questions: Sequence[Question], on_answer: OnAnswer | None = None, *, anew: bool = False
    ) -> list[Reply]:
        """The reply to each question, in their order. ``anew``: kept answers are neither looked up nor written."""
        replies: dict[int, Reply] = {}
        order = sorted(range(len(questions)), key=lambda index: questions[index].order)
        todo: dict[int, str | None] = {}
        for index in order:
            name = None if anew else self._name(questions[index])
            found = None if name is None else self.kept.get(name)
            if found is None:
                todo[index] = name
            else:
                replies[index] = self._checked(found)
                if on_answer is not None:
                    on_answer(index, replies[index])
        if todo:
            begun = time.monotonic()
            try:
                self._transport.run(self._ask_all(questions, todo, replies, on_answer))
            finally:
                self.seconds += time.monotonic() - begun
        return [replies[index] for index in range(len(questions))]

    def get(self, path: str) -> Any:
        """What a route of the server itself says (``/props``), ``None`` where it has no such route."""
        return self._transport.run(self._transport.service("GET", path, None))

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """The same for a route that takes a body (``/tokenize``)."""
        return self._transport.run(self._transport.service("POST", path, body))

    def close(self) -> None:
        """Close connections and files."""
        self.kept.close()
        self._transport.close()

    # How it is done.

    def _name(self, question: Question) -> str:
        return self.kept.key(
            {
                "server": self.url,
                "model": self.address.model,
                "reported": self.reported,
                "route": question.route,
                "body": question.body,
                "number": question.number,
            }
        )

    async def _ask_all(
        self,
        questions: Sequence[Question],
        todo: Mapping[int, str | None],
        replies: dict[int, Reply],
        on_answer: OnAnswer | None,
    ) -> None:
        """A fixed number of senders take the next question each; after an error nothing more is sent.

        What is in flight then is waited for and kept, since it is paid for. ``todo``: indexes of the questions, and the
        names by which their answers are kept, None where they are not.
        """
        errors: list[BaseException] = []
        left = iter(todo.items())

        async def one(index: int, name: str | None) -> None:
            self.budget.check()
            begun = time.monotonic()
            raw = await self._send(questions[index])
            self._pacer.took(time.monotonic() - begun)
            reply = self._checked(raw)
            self._count(reply)
            if name is not None:
                self.kept.put(name, raw)
            replies[index] = reply
            if on_answer is not None:
                on_answer(index, reply)

        async def sender() -> None:
            try:
                while not errors and (following := next(left, None)) is not None:
                    await self._pacer.turn()
                    if not errors:
                        await one(*following)
            except Exception as error:
                errors.append(error)

        await asyncio.gather(*(sender() for _ in range(min(self.settings.concurrency, len(todo)))))
        if errors:
            raise errors[0] if isinstance(errors[0], HarnessError) else self._transport.unexpected(errors[0])

    async def _send(self, question: Question) -> dict[str, Any]:
        """One answer as it is kept. Half a JSON is asked for again, as a lost connection is by the client itself."""
        body = {"model": self.address.model, **question.body}
        for attempt in range(self.settings.retries + 1):
            response = await self._transport.request("POST", f"/{question.route}", body)
            try:
                content = json.loads(self._transport.hide(response.text))
                break
            except ValueError:
                if attempt == self.settings.retries:
                    shown = self._transport.shown(response)
                    raise ServerError(
                        f"{self._transport.who}: answered {attempt + 1} times with what is no JSON: {shown}"
                    ) from None
                await asyncio.sleep(min(8.0, 0.25 * 2**attempt))
        return self._reduced(content, retries_of(response) + attempt)

    def _reduced(self, content: Any, retries: int) -> dict[str, Any]:
        if isinstance(content, dict) and content.get("error"):
            raise ServerError(f"{self._transport.who}: answered 200 with an error: {message_of(content)}")
        choices = content.get("choices") if isinstance(content, dict) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise ServerError(f"{self._transport.who}: the answer holds no choices: {json.dumps(content)[:200]}")
        if any(_said(one) != _said(choices[0]) for one in choices[1:]):
            raise ServerError(f"{self._transport.who}: answers in {len(choices)} ways where one answer was asked for")
        return {
            "choice": choices[0],
            "usage": content.get("usage"),
            "model": content.get("model"),
            "fingerprint": content.get("system_fingerprint"),
            "retries": retries,
        }

    def _checked(self, raw: Mapping[str, Any]) -> Reply:
        """A kept or new answer, if it is one of the model that was asked; ``ServerError`` where it is not."""
        usage = raw["usage"] if isinstance(raw["usage"], dict) else {}
        model = str(raw["model"] or self.address.model)
        if self.reported is None:
            self.reported = model
        if model != self.reported:
            raise ServerError(
                f"{self._transport.who}: an answer came from model {model!r}, the earlier ones from {self.reported!r}; "
                "one address must stand for one model"
            )
        end = raw["choice"].get("finish_reason")
        if end not in _USUAL_ENDS:
            self.ends[end if end in _OTHER_ENDS else "other"] += 1
        return Reply(
            choice=raw["choice"],
            prompt_tokens=_whole(usage.get("prompt_tokens")),
            answer_tokens=_whole(usage.get("completion_tokens")),
            model=model,
            fingerprint=None if raw["fingerprint"] is None else str(raw["fingerprint"]),
            retries=int(raw["retries"]),
        )

    def _count(self, reply: Reply) -> None:
        self.asked += 1
        self.retries += reply.retries
        self.prompt_tokens += reply.prompt_tokens or 0
        self.answer_tokens += reply.answer_tokens or 0
        self.uncounted += reply.prompt_tokens is None
        if reply.fingerprint:
            self.fingerprints.add(reply.fingerprint)
        self.budget.add((reply.prompt_tokens or 0) + (reply.answer_tokens or 0))


def _said(choice: object) -> object:
    return {**choice, "index": 0} if isinstance(choice, dict) else choice


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
