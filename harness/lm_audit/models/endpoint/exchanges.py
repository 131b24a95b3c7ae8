"""What a server was asked: replies whose tokens are checked, whether it says the same again, and what answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lm_audit.errors import HarnessError, ModelError
from lm_audit.models.endpoint.client.client import Client
from lm_audit.models.endpoint.client.questions import Question, Reply
from lm_audit.models.endpoint.facts import EndpointFacts
from lm_audit.models.endpoint.repeats import Repeats


class Exchanges:
    """Asks, and keeps whether greedy requests had the same answer again: ``repeats``, once some were asked twice."""

    def __init__(self, client: Client, facts: EndpointFacts, name: str):
        self._client, self._facts, self._name = client, facts, name
        self.repeats: Repeats | None = None

    def ask(
        self,
        questions: Sequence[Question],
        counts: Sequence[int | None],
        *,
        repeatable: bool,
        progress: Callable[[int, int, int], object] | None,
    ) -> list[Reply]:
        """The replies in the order of the questions; ``progress`` is told of replies, questions and tokens so far.

        ``counts`` are the tokens of the prompts where they are counted here; raises ``ModelError`` where the server
        counts others. Of the first ``repeatable`` (greedy) requests some are asked twice.
        """
        done, tokens = 0, 0

        def arrived(index: int, reply: Reply) -> None:
            nonlocal done, tokens
            if counts[index] is not None and reply.prompt_tokens not in (None, counts[index]):
                raise ModelError(
                    f"model {self._name}: prompt {index} has {counts[index]} tokens by {self._facts.tokenizer}, and "
                    f"{reply.prompt_tokens} by the server's usage; name the served model's tokenizer with --tokenizer"
                )
            done += 1
            tokens += (reply.prompt_tokens or 0) + (reply.answer_tokens or 0)
            if progress is not None:
                progress(done, len(questions), tokens)

        replies = self._client.ask(questions, arrived)
        if repeatable and self.repeats is None and questions and self._client.settings.repeat_checks:
            self.repeats = self._again(questions, replies)
        return replies

    def _again(self, questions: Sequence[Question], replies: Sequence[Reply]) -> Repeats:
        """Whether the server gives a greedy request the same answer again, under the load of these requests."""
        some = questions[: self._client.settings.repeat_checks]
        again: dict[int, Reply] = {}
        broken = ""
        try:
            self._client.ask(some, again.__setitem__, anew=True)
        except HarnessError as error:  # The answers themselves are there: a check of them costs no case.
            broken = str(error)
        differing = sum(replies[index].said != second.said for index, second in again.items())
        return Repeats(differing, len(again), len(some), broken)


def provenance_of(client: Client, facts: EndpointFacts, repeats: Repeats | None) -> dict[str, Any]:
    """What answered, by which settings, and what it has cost this process so far."""
    fingerprints = sorted(client.fingerprints) or None
    found: dict[str, Any] = {
        "endpoint.model": facts.reported,
        "endpoint.system_fingerprint": ", ".join(fingerprints) if fingerprints else "none reported",
        "endpoint.requests": client.asked,
        "endpoint.kept_answers": client.kept.found,
        "endpoint.retries": client.retries,
        "endpoint.prompt_tokens": client.prompt_tokens,
        "endpoint.answer_tokens": client.answer_tokens,
        "endpoint.tokenizer": facts.tokenizer or "none: lengths by usage",
    }
    found |= {f"endpoint.ended_by_{end}": count for end, count in sorted(client.ends.items())}
    if client.uncounted:
        found["endpoint.requests_without_usage"] = client.uncounted
    if repeats is not None:
        found["endpoint.determinism"] = repeats.told
    return found
