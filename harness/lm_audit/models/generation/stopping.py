"""When a continuation is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from lm_audit.models.text.thinking import marker_ids
from lm_audit.models.text.thought_budget import ThoughtBudget
from lm_audit.models.text.thought_markers import ThoughtMarkers
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


def end_ids(model: LanguageModel) -> frozenset[int]:
    """Every id that ends a text for this model: from its generation config, its config and its tokenizer."""
    named = [getattr(model.tokenizer, "eos_token_id", None)]
    for config in (model.module.config, getattr(model.module, "generation_config", None)):
        value = getattr(config, "eos_token_id", None)
        named.extend(value if isinstance(value, (list, tuple)) else [value])
    return frozenset(int(value) for value in named if value is not None)


class Room:
    """How many tokens a reply may have: ``answer`` of them, ``thought`` more for what comes before the answer.

    ``context`` is what the prompt leaves of the model's context, ``None`` where that has no end. Without ``thought``
    (``None``) thought and answer share ``answer``.
    """

    def __init__(self, answer: int, *, thought: int | None = None, context: int | None = None):
        self.answer, self.thought, self.context = answer, thought, context


class Continuation:
    """The tokens of one row so far and whether they are all.

    ``opened``: the thought that the prompt's end has opened. Stop strings end an answer, never a thought that has its
    own room.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        ends: frozenset[int],
        stop: tuple[str, ...],
        room: Room,
        *,
        opened: ThoughtMarkers | None = None,
    ):
        self.ids: list[int] = []
        self._shown: list[int] = []
        self._marks = marker_ids(tokenizer)
        self._special = _special_ids(tokenizer) - self._marks
        self._tokenizer = tokenizer
        self._ends = ends
        self._stop = stop
        self.opened = opened
        self._room = room
        self._thought_ids = 0
        self._budget = None if room.thought is None else ThoughtBudget(tokenizer, opened, room.thought)
        self._reason: Literal["eos", "stop", "length"] | None = "length" if self._full else None
        self._cut: int | None = None
        # A token is a byte or more (a piece of a character may decode to a mark of its own): no stop string that the
        # newest token completes begins before the last `window` tokens.
        self._window = max((len(text.encode()) for text in stop), default=0) + 4

    @property
    def finished(self) -> bool:
        return self._reason is not None

    @property
    def thinking(self) -> bool:
        """Whether the next token belongs to a thought that has its own room."""
        return self._budget is not None and self._budget.thinking

    @property
    def thought_cut(self) -> bool:
        """Whether the thought was closed because its room was spent."""
        return self._budget is not None and self._budget.cut

    def may_need(self, coming: int) -> bool:
        """Whether it may want another token behind so many that are under way."""
        return not self.finished and not self._full_with(len(self.ids) + coming)

    def forced(self) -> int | None:
        """The token that must come next, whatever the model says: the thought is being closed."""
        return None if self._budget is None else self._budget.forced()

    def add(self, token: int) -> None:
        """Take one more token in."""
        if token in self._ends and self.forced() is None:
            self._reason = "eos"
            return
        in_thought = self.thinking
        self.ids.append(token)
        if token not in self._special:
            self._shown.append(token)
        if self._budget is not None:
            self._budget.add(self.ids, self.text_of)
        if in_thought or self.thinking:
            self._thought_ids = len(self.ids)
        elif self._stop:
            self._look_for_stop()
        if self._reason is None and self._full:
            self._reason = "length"

    @property
    def _full(self) -> bool:
        if self._full_with(len(self.ids)):
            return True
        if self._budget is None:
            return False
        if self._budget.thinking or self._budget.undecided:
            return False
        return self._budget.answer_tokens >= self._room.answer

    def _full_with(self, tokens: int) -> bool:
        """Whether so many leave no room, whatever they are."""
        if self._room.context is not None and tokens >= self._room.context:
            return True
        return self._budget is None and tokens >= self._room.answer

    def result(self) -> tuple[str, tuple[int, ...], Literal["eos", "stop", "length"]]:
        """Text, ids and reason, as ``Generation`` takes them."""
        assert self._reason is not None
        text = self.text_of(self.ids)
        return text if self._cut is None else text[: self._cut], tuple(self.ids), self._reason

    def text_of(self, ids: Sequence[int]) -> str:
        """Tokens as text, without special tokens except those that mark a thought."""
        if self._marks:
            kept = [token for token in ids if token not in self._special]
            return str(self._tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _look_for_stop(self) -> None:
        if not self._places(self._shown[-self._window :], 0):
            return
        thought = len(self.text_of(self.ids[: self._thought_ids]))
        places = self._places(self.ids, thought)
        if places:
            self._cut, self._reason = min(places), "stop"

    def _places(self, ids: list[int], start: int) -> list[int]:
        text = self.text_of(ids)
        return [place for place in (text.find(stop, start) for stop in self._stop) if place >= 0]


def _special_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Ids that decoding leaves out."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    flagged = {int(number) for number, token in added.items() if getattr(token, "special", False)}
    return frozenset(flagged | set(getattr(tokenizer, "all_special_ids", ())))
