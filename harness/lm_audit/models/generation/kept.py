"""Replies that are kept as they end (:mod:`lm_audit.shared.answers`), for a call that goes on after a kill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_audit.models.text.thought_markers import ThoughtMarkers
from lm_audit.shared.answers import next_call


class KeptReplies:
    """The replies of one call: ``known`` by the prompt's index.

    A prompt is its ids and the markers of the thought that it opened; ``targets`` are what is scored in the reply's
    place.
    """

    def __init__(
        self,
        settings: tuple[object, ...],
        prompts: Sequence[tuple[Sequence[int], ThoughtMarkers | None]],
        targets: Sequence[Sequence[int]] | None = None,
    ):
        self._prompts, self._targets = prompts, targets
        self._call = next_call(*settings)
        self.known: dict[int, Any] = {}
        if self._call is not None:
            found = ((index, self._call.known(*self._request(index))) for index in range(len(prompts)))
            self.known = {index: reply for index, reply in found if reply is not None}

    def keep(self, index: int, reply: Any) -> None:
        """Write a reply that has just ended, as plain JSON."""
        if self._call is not None:
            self._call.add([(self._request(index), reply)])

    def _request(self, index: int) -> tuple[bytes, ...]:
        ids, opened = self._prompts[index]
        target = self._targets[index] if self._targets is not None else ()
        # With the index: a caller may say of each prompt when it has seen enough, and draws are each row's own.
        said = (index, list(map(int, ids)), list(map(int, target)), opened.name if opened else None)
        return (repr(said).encode("utf-8", "surrogatepass"),)
