"""When a continuation is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


def end_ids(model: LanguageModel) -> frozenset[int]:
    """Every id that ends a text for this model: from its generation config, its config and its tokenizer."""
    named = [getattr(model.tokenizer, "eos_token_id", None)]
    for config in (model.module.config, getattr(model.module, "generation_config", None)):
        value = getattr(config, "eos_token_id", None)
        named.extend(value if isinstance(value, (list, tuple)) else [value])
    return frozenset(int(value) for value in named if value is not None)


class Continuation:
    """The tokens of one row so far and whether they are all."""

    def __init__(self, tokenizer: Any, ends: frozenset[int], stop: tuple[str, ...], room: int):
        self.ids: list[int] = []
        self._shown: list[int] = []
        self._special = frozenset(getattr(tokenizer, "all_special_ids", ()))
        self._tokenizer = tokenizer
        self._ends = ends
        self._stop = stop
        self._room = room
        self._reason: Literal["eos", "stop", "length"] | None = None if room > 0 else "length"
        self._cut: int | None = None
        # A token is a byte or more (a piece of a character may decode to a mark of its own): no stop string that the
        # newest token completes begins before the last `window` tokens.
        self._window = max((len(text.encode()) for text in stop), default=0) + 4

    @property
    def finished(self) -> bool:
        return self._reason is not None

    def add(self, token: int) -> None:
        """Take one more token in."""
        if token in self._ends:
            self._reason = "eos"
            return
        self.ids.append(token)
        if token not in self._special:
            self._shown.append(token)
        if self._stop:
            self._look_for_stop()
        if self._reason is None and len(self.ids) >= self._room:
            self._reason = "length"

    def result(self) -> tuple[str, tuple[int, ...], Literal["eos", "stop", "length"]]:
        """Text, ids and reason, as ``Generation`` takes them."""
        assert self._reason is not None
        text = self._text(self.ids)
        return text if self._cut is None else text[: self._cut], tuple(self.ids), self._reason

    def _look_for_stop(self) -> None:
        if not self._places(self._shown[-self._window :]):
            return
        places = self._places(self.ids)
        if places:
            self._cut, self._reason = min(places), "stop"

    def _places(self, ids: list[int]) -> list[int]:
        text = self._text(ids)
        return [place for place in (text.find(stop) for stop in self._stop) if place >= 0]

    def _text(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text
