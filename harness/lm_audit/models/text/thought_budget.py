"""ThoughtBudget: how far a reply is, in its thought or in its answer, and when the thought is closed from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lm_audit.models.text.thinking import closing_found, opening_state
from lm_audit.models.text.thought_markers import ThoughtMarkers
from lm_audit.models.text.tokenizer import Tokenizer

Decode = Callable[[Sequence[int]], str]


class ThoughtBudget:
    """Watches one reply token by token.

    After ``limit`` tokens of thought the closing marker is written in the model's stead, token by token, and the answer
    follows; ``cut`` tells so. ``answer_tokens`` counts what came after the thought (everything, where there is none).
    """

    def __init__(self, tokenizer: Tokenizer, opened: ThoughtMarkers | None, limit: int):
        self._tokenizer = tokenizer
        self._limit = limit
        self._markers = opened
        self._may_open = opened is None
        self._begun = False
        self._thought_tokens = 0
        self._forced: list[int] = []
        self.answer_tokens = 0
        self.cut = False
        self._close_if_spent()

    @property
    def thinking(self) -> bool:
        """Whether the next token belongs to the thought or to what closes it."""
        return self._markers is not None or bool(self._forced)

    @property
    def undecided(self) -> bool:
        """Whether the reply so far is the beginning of an opening marker: it may be no answer yet."""
        return self._may_open and self._begun

    def forced(self) -> int | None:
        """The next token of what closes the thought, ``None`` where the model writes itself."""
        return self._forced[0] if self._forced else None

    def add(self, ids: Sequence[int], decode: Decode) -> None:
        """Take in the newest of ``ids``, which are the reply so far."""
        if self._forced:
            self._forced.pop(0)
        elif self._markers is not None:
            self._thought_tokens += 1
            # A token is a byte or more: a marker that the newest token completes begins within these.
            window = ids[-(len(self._markers.close.encode()) + 24) :]
            text = decode(window)
            # The newest token completes it, or shows that the one before did: what is quoted slides out of the window.
            if closing_found(self._markers, text) and closing_found(self._markers, text, len(decode(window[:-2]))):
                self._markers = None
            self._close_if_spent()
        else:
            self.answer_tokens += 1
            if self._may_open:
                self._look_for_opening(decode(ids))

    def _look_for_opening(self, text: str) -> None:
        state = opening_state(text)
        if isinstance(state, bool):
            self._may_open, self._begun = state, bool(text.strip())
            return
        self._may_open, self._markers, self.answer_tokens = False, state, 0
        self._close_if_spent()

    def _close_if_spent(self) -> None:
        if self._markers is not None and self._thought_tokens >= self._limit:
            self._forced = list(self._tokenizer(self._markers.close, add_special_tokens=False).input_ids)
            self._markers, self.cut = None, True
