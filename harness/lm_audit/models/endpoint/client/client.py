"""Requests to a server by the official ``openai`` client: many in flight, retried by it, each answer kept at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

from lm_audit.errors import HarnessError, ServerError, UsageError
from lm_audit.models.endpoint.address import KEY_VARIABLE, Address, base_url, is_loopback
from lm_audit.models.endpoint.budget import Budget
from lm_audit.models.endpoint.kept import KeptAnswers
from lm_audit.models.endpoint.pacing import Pacer
from lm_audit.models.endpoint.reply_limits import HEADERS, reply_limit
from lm_audit.models.endpoint.secrets import Key
from lm_audit.models.endpoint.settings import EndpointSettings

Route = Literal["chat/completions", "completions"]
OnAnswer = Callable[[int, "Reply"], None]

_LONGEST_MESSAGE = 400
_USUAL_ENDS = (None, "stop", "length", "eos", "eos_token", "max_tokens", "stop_sequence")
_OTHER_ENDS = ("content_filter", "tool_calls", "function_call", "abort", "error")
"""Ends of answers that are not the model's own: they are counted, for what was said then is not what it would say."""


@dataclass(frozen=True)
class Question:
    """One request: its route and body (without the model). ``number`` tells equal questions apart."""

    route: Route
    body: Mapping[str, Any]
    number: int = 0

    @property
    def order(self) -> tuple[str, Any]:
        """Questions that begin alike stand next to one another by this, so that a server's prefix cache is warm."""
        prompt = self.body.get("prompt")
        text = [] if isinstance(prompt, str) else prompt
        return (prompt if isinstance(prompt, str) else json.dumps(self.body.get("messages") or ""), text)


@dataclass(frozen=True)
class Reply:
    """What came back. ``choice`` is the server's own record of the answer; ``tokens`` are None where it counts none."""

    choice: Mapping[str, Any]
    prompt_tokens: int | None
    answer_tokens: int | None
    model: str
    fingerprint: str | None
    retries: int

    @property
    def said(self) -> tuple[Any, ...]:
        """What two answers are compared by: text or message, not their counts, scores and names."""
        message = self.choice.get("message")
        parts = [message.get(name) for name in _PARTS] if isinstance(message, dict) else [message]
        return (self.choice.get("text"), *parts)


_PARTS = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls")


class Client:
    """One server and one model of it.

    Raises ``UsageError`` for a package that is not installed, an address that may not be used, a wrong key or model;
    ``ServerError`` for a server that is not there, does not answer in time, or answers what no model would;
    ``BudgetError`` where the tokens are spent. Whatever was answered by then is kept.
    """

    def __init__(self, address: Address, settings: EndpointSettings):
        self.address = address
        self.settings = settings
        self.url = base_url(address, allow_insecure=settings.allow_insecure)
        self.root = self.url.removesuffix("/v1")
        self.kept = KeptAnswers(settings.folder, settings.writer, settings.reuse)
        self.budget = Budget(settings.budget, settings.folder, settings.writer)
        self.reported: str | None = None
        self.fingerprints: set[str] = set()
        self.ends: Counter[str] = Counter()
        self.asked = self.retries = self.prompt_tokens = self.answer_tokens = self.uncounted = 0
        self.seconds = 0.0
        self._pacer = Pacer(settings.concurrency)
        self._key = Key()
        self._runner: asyncio.Runner | None = None
        self._openai: Any = None

    # What the harness asks.

    def ask(
        self, questions: Sequence[Question], on_answer: OnAnswer | None = None, *, anew: bool = False
    ) -> list[Reply]:
        """The reply to each question, in their order. ``anew``: kept answers are neither looked up nor written."""
        replies: dict[int, Reply] = {}
        order = sorted(range(len(questions)), key=lambda index: questions[index].order)
        todo = []
        for index in order:
            found = None if anew else self.kept.get(self._name(questions[index]))
            if found is None:
                todo.append(index)
            else:
                replies[index] = self._checked(found)
                if on_answer is not None:
                    on_answer(index, replies[index])
        if todo:
            begun = time.monotonic()
            try:
                self._run(self._ask_all(questions, iter(todo), len(todo), replies, on_answer, anew))
            finally:
                self.seconds += time.monotonic() - begun
        return [replies[index] for index in range(len(questions))]

    def get(self, path: str) -> Any:
        """What a route of the server itself says (``/props``), ``None`` where it has no such route."""
        return self._run(self._service("GET", path, None))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The same for a route that takes a body (``/tokenize``)."""
        return self._run(self._service("POST", path, body))

    def close(self) -> None:
        """Close connections and files."""
        self.kept.close()
        if self._runner is not None:
            self._beside(self._close_here)

    def hide(self, text: str) -> str:
        """A text from the server without the key."""
        return self._key.hide(text)

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

    def _run(self, work: Any) -> Any:
        """Runs on the one event loop of this client."""
        return self._beside(partial(self._run_here, work))

    def _beside(self, call: Callable[[], Any]) -> Any:
        """Calls here, or in a thread where this one runs a loop already, as in a notebook: it cannot run a second."""
        if not _in_a_loop():
            return call()
        with ThreadPoolExecutor(1, "lm-audit-client") as thread:
            done = thread.submit(call)
            try:
                return done.result()
            except BaseException:
                if not done.done() and self._runner is not None:
                    self._runner.get_loop().call_soon_threadsafe(_cancel_all, self._runner.get_loop())
                raise

    def _run_here(self, work: Any) -> Any:
        """Runs in this thread; what an interruption leaves behind is cancelled."""
        if self._runner is None:
            try:
                self._runner = asyncio.Runner()
                self._openai = self._runner.run(self._connect())
            except BaseException:
                work.close()
                raise
        try:
            return self._runner.run(work)
        except BaseException:
            with contextlib.suppress(BaseException):
                self._runner.run(_cancel_others())
            raise

    def _close_here(self) -> None:
        assert self._runner is not None
        with contextlib.suppress(Exception):
            self._runner.run(self._openai.close())
        self._runner.close()
        self._runner = None

    async def _connect(self) -> Any:
        try:
            import httpx2
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient
        except ImportError:
            raise UsageError(
                f"openai:{self.address.model} needs the package openai: pip install 'pytest-lm-audit[endpoint]'"
            ) from None
        loopback = is_loopback(urlsplit(self.url).hostname or "")
        # A proxy is for other machines; a redirect could lead to a host that nobody named, or to plain http.
        # A private authority's file (SSL_CERT_FILE) counts for this machine too.
        http = DefaultAsyncHttpxClient(
            follow_redirects=False,
            trust_env=not loopback,
            verify=httpx2.create_ssl_context(trust_env=True),
            event_hooks={"response": [reply_limit(self._who(), self.settings.timeout_s)]},
        )
        return AsyncOpenAI(
            api_key=self._key.reveal(),
            base_url=self.url,
            max_retries=self.settings.retries,
            timeout=self.settings.timeout_s,
            http_client=http,
            default_headers=HEADERS,
        )

    async def _ask_all(
        self,
        questions: Sequence[Question],
        todo: Iterator[int],
        count: int,
        replies: dict[int, Reply],
        on_answer: OnAnswer | None,
        anew: bool,
    ) -> None:
        """A fixed number of senders take the next question each; after an error nothing more is sent.

        What is in flight then is waited for and kept, since it is paid for.
        """
        errors: list[BaseException] = []

        async def one(index: int) -> None:
            self.budget.check()
            begun = time.monotonic()
            raw = await self._send(questions[index])
            self._pacer.took(time.monotonic() - begun)
            reply = self._checked(raw)
            self._count(reply)
            if not anew:
                self.kept.put(self._name(questions[index]), raw)
            replies[index] = reply
            if on_answer is not None:
                on_answer(index, reply)

        async def sender() -> None:
            try:
                while not errors and (index := next(todo, None)) is not None:
                    await self._pacer.turn()
                    if not errors:
                        await one(index)
            except Exception as error:
                errors.append(error)

        await asyncio.gather(*(sender() for _ in range(min(self.settings.concurrency, count))))
        if errors:
            raise errors[0] if isinstance(errors[0], HarnessError) else self._unexpected(errors[0])

    def _unexpected(self, error: BaseException) -> HarnessError:
        return ServerError(f"{self._who()}: {type(error).__name__}: {self.hide(str(error))[:_LONGEST_MESSAGE]}")

    async def _send(self, question: Question) -> dict[str, Any]:
        """One answer as it is kept. Half a JSON is asked for again, as a lost connection is by the client itself."""
        body = {"model": self.address.model, **question.body}
        for attempt in range(self.settings.retries + 1):
            response = await self._request("POST", f"/{question.route}", body)
            try:
                content = json.loads(self.hide(response.text))
                break
            except ValueError:
                if attempt == self.settings.retries:
                    raise ServerError(
                        f"{self._who()}: answered {attempt + 1} times with what is no JSON: {self._shown(response)}"
                    ) from None
                await asyncio.sleep(min(8.0, 0.25 * 2**attempt))
        retries = int(response.request.headers.get("x-stainless-retry-count", 0)) + attempt
        return self._reduced(content, retries)

    def _reduced(self, content: Any, retries: int) -> dict[str, Any]:
        if isinstance(content, dict) and content.get("error"):
            raise ServerError(f"{self._who()}: answered 200 with an error: {_message(content)}")
        choices = content.get("choices") if isinstance(content, dict) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise ServerError(f"{self._who()}: the answer holds no choices: {json.dumps(content)[:200]}")
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
                f"{self._who()}: an answer came from model {model!r}, the earlier ones from {self.reported!r}; one "
                "address must stand for one model"
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

    async def _service(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        url = f"{self.root}{path}" if not path.startswith("/v1/") else f"{self.url}{path.removeprefix('/v1')}"
        try:
            response = await self._request(method, url, body)
        except _NoRoute:
            return None
        try:
            return json.loads(self.hide(response.text))
        except ValueError:
            return None

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        import httpx2
        import openai

        try:
            if method == "GET":
                return await self._openai.get(path, cast_to=httpx2.Response)
            return await self._openai.post(path, body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            raise self._refused(error.response, path) from None
        except openai.APITimeoutError:
            raise ServerError(
                f"{self._who()}: no answer within {self.settings.timeout_s:g} s, {self.settings.retries + 1} times; "
                "give it more with --request-timeout, or ask less at once with --concurrency"
            ) from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from None

    def _refused(self, response: Any, path: str) -> HarnessError:
        """The error that a status stands for, in words."""
        status, said = int(response.status_code), self._shown(response)
        if status in (401, 403):
            return UsageError(f"{self._who()}: refuses the key in {KEY_VARIABLE} ({status}): {said}")
        if status in (404, 405, 501):
            return _NoRoute(f"{self._who()}: has no {path} ({status}): {said}; should the URL end in /v1?")
        if status in (400, 413, 422):
            return RefusedRequest(f"{self._who()}: refuses the request ({status}): {said}")
        if 300 <= status < 400:
            target = self.hide(str(response.headers.get("location", "?")))
            return UsageError(f"{self._who()}: redirects to {target} ({status}); name that URL if it is the right one")
        if status == 429 and "insufficient_quota" in response.text:
            return UsageError(f"{self._who()}: the quota is used up ({status}): {said}")
        return ServerError(f"{self._who()}: {status} after {self.settings.retries + 1} tries: {said}")

    def _unreachable(self, error: BaseException) -> HarnessError:
        causes = list(_causes(error))
        said = self.hide(str(causes[-1]) or type(causes[-1]).__name__)[:_LONGEST_MESSAGE]
        if any(isinstance(one, ssl.SSLError) for one in causes) or "certificate" in said.casefold():
            return UsageError(
                f"{self._who()}: its certificate or TLS fails: {said}; a private authority's file "
                "goes into SSL_CERT_FILE"
            )
        return ServerError(f"{self._who()}: cannot be reached: {said}; is a server running there?")

    def _who(self) -> str:
        return f"openai:{self.address.model} at {self.url}"

    def _shown(self, response: Any) -> str:
        """What a response says, in one short line without the key."""
        text = self.hide(response.text)
        with contextlib.suppress(ValueError):
            text = _message(json.loads(text))
        return " ".join(text.split())[:_LONGEST_MESSAGE] or "nothing"


class _NoRoute(ServerError):
    """The server has no such route."""


class RefusedRequest(ServerError):
    """The server is there and will not answer this request: it is too long, or asks for what it cannot do."""


def no_route(error: Exception) -> bool:
    """Whether an error says that the server has no such route."""
    return isinstance(error, _NoRoute)


def check_finite(values: Sequence[Any], who: str) -> list[float]:
    """Log-probabilities as numbers; ``ServerError`` for one that is absent, NaN, infinite or above 0."""
    found = []
    for place, value in enumerate(values):
        # An integer may be too long for a float; NaN compares as false.
        if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-6:
            raise ServerError(
                f"{who}: the log-probability of token {place} is {value!r:.60}, not a number of at most 0"
            )
        if value < -sys.float_info.max:
            raise ServerError(f"{who}: the log-probability of token {place} is -Infinity, which no softmax gives")
        found.append(min(0.0, float(value)))
    return found


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _cancel_others() -> None:
    current = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not current]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _message(content: Any) -> str:
    """What an error body says, whichever of the usual forms it has."""
    found = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(found, dict):
        found = found.get("message") or found.get("detail") or found
    return found if isinstance(found, str) else json.dumps(found)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
