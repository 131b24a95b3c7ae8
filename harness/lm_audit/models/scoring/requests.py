"""From requests, text or token ids, to token sequences with a place where the target begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lm_audit.errors import ContextError, DataError, UsageError, beyond_context
from lm_audit.models.scoring.boundary import TextSplitter
from lm_audit.models.text.text_ids import added, unknown_id
from lm_audit.models.text.tokenizer import Tokenizer

TextOrIds = str | Sequence[int] | NDArray[np.integer[Any]]
Request = tuple[TextOrIds, TextOrIds]
Ids = NDArray[np.int64]
Bos = Literal["default", "none"] | int


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """One request as the model sees it: ``ids`` (BOS included), the target's tokens are ``ids[start:]``."""

    ids: NDArray[np.int64]
    start: int
    merged: bool

    @property
    def first_scored(self) -> int:
        """Index of the first target token that something precedes."""
        return min(max(self.start, 1), len(self.ids))

    @property
    def inputs(self) -> int:
        """How many tokens the model must read: all but the last, or none where nothing is scored."""
        return len(self.ids) - 1 if self.first_scored < len(self.ids) else 0


def with_any_token(item: Encoded) -> Encoded:
    """The sequence with one more token as its only target, which stands for whatever may come next."""
    return Encoded(np.append(item.ids, np.int64(0)), len(item.ids), item.merged)


class RequestEncoder:
    """Turns requests into ``Encoded`` sequences by the rules of ``LanguageModel.loglikelihood``."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self.splitter = TextSplitter(tokenizer)
        self._default_bos: tuple[int, ...] | None = None

    def encode(self, requests: Sequence[Request], bos: Bos) -> list[Encoded]:
        """One sequence for each request. Raises UsageError for a request or ``bos`` of the wrong form, DataError for a
        target of which the tokenizer reads nothing.
        """
        head = self._bos_ids(bos)
        prepared = [_prepare(index, request) for index, request in enumerate(requests)]
        texts = [(i, p) for i, p in enumerate(prepared) if isinstance(p, _Joined)]
        splits = self.splitter.split([p.text for _, p in texts], [p.at for _, p in texts])
        out: dict[int, Encoded] = {}
        for (i, joined), (ids, start, merged) in zip(texts, splits, strict=True):
            self._require_read(joined.text[joined.at :], ids[start:], i)
            out[i] = _with_bos(ids, start, merged, head)
        for i, (prefix, target) in zip(*self._as_pairs(prepared), strict=True):
            out[i] = _with_bos(np.concatenate([prefix, target]), len(prefix), False, head)
        return [out[i] for i in range(len(prepared))]

    def _require_read(self, target: str, ids: Ids, index: int) -> None:
        """``DataError`` for a target of which the tokens tell nothing: its letters are dropped, or all unknown."""
        if not target.strip():
            return
        if not len(ids):
            raise DataError(
                f"the tokenizer reads nothing of the target {target!r:.80}: its rules drop these characters, so that"
                " there is nothing to score",
                field=f"request {index}",
            )
        unknown = unknown_id(self._tokenizer)
        if unknown is None or unknown not in ids or str(getattr(self._tokenizer, "unk_token", "")) in target:
            return
        known = [int(number) for number in ids if number != unknown]
        if not known or not str(self._tokenizer.decode(known)).strip():
            raise DataError(
                f"the tokenizer knows no letter of the target {target!r:.80}, and reads the unknown token in its place:"
                " every such text would score the same",
                field=f"request {index}",
            )

    def _as_pairs(self, prepared: Sequence[_Joined | tuple[Any, Any]]) -> tuple[list[int], list[tuple[Ids, Ids]]]:
        """Places and token ids of the requests of which at least one part is ids; text beside ids stands for itself."""
        mixed = [(i, p) for i, p in enumerate(prepared) if isinstance(p, tuple)]
        texts = sorted({x for _, pair in mixed for x in pair if isinstance(x, str)})
        known = dict(zip(texts, self.splitter.ids(texts), strict=True))
        pairs = [[known[x] if isinstance(x, str) else x for x in pair] for _, pair in mixed]
        return [i for i, _ in mixed], [(prefix, target) for prefix, target in pairs]

    def _bos_ids(self, bos: Bos) -> tuple[int, ...]:
        if bos == "none":
            return ()
        if bos == "default":
            if self._default_bos is None:
                self._default_bos = default_bos(self._tokenizer)
            return self._default_bos
        if isinstance(bos, (int, np.integer)) and not isinstance(bos, bool):
            return (int(bos),)
        raise UsageError(f'bos is {bos!r}; it must be "default", "none" or a token id')


def default_bos(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The token ids that the tokenizer itself puts before a text: usually one BOS, or none."""
    return added(tokenizer)[0]


@dataclass(frozen=True, slots=True)
class _Joined:
    text: str
    at: int


def _prepare(index: int, request: Request) -> _Joined | tuple[Any, Any]:
    """Text pairs become one string with the character at which the target begins; white space moves to the target."""
    try:
        prefix, target = request
    except (TypeError, ValueError):
        raise UsageError(f"request {index} is {request!r:.80}; a request is a pair (prefix, target)") from None
    if isinstance(prefix, str) and isinstance(target, str):
        return _Joined(prefix + target, len(prefix.rstrip()))
    left, right = (x if isinstance(x, str) else _as_ids(index, x) for x in (prefix, target))
    return left, right


def _as_ids(index: int, values: object) -> NDArray[np.int64]:
    ids = np.asarray(values)
    if ids.size == 0:
        return np.zeros(0, dtype=np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise UsageError(f"request {index} holds {values!r:.80}; prefix and target are text or one list of token ids")
    return ids.astype(np.int64)


def _with_bos(ids: NDArray[np.int64], start: int, merged: bool, head: tuple[int, ...]) -> Encoded:
    if head and tuple(ids[: len(head)]) != head:
        return Encoded(np.concatenate([np.array(head, dtype=np.int64), ids]), start + len(head), merged)
    return Encoded(ids, start, merged)


def check_sizes(encoded: Sequence[Encoded], *, window: int | None, vocabulary: int | None, name: str) -> None:
    """Raises DataError for the first request that the model cannot read, by its index in the call."""
    if window is not None:
        for index, item in enumerate(encoded):
            if item.inputs > window:
                # The last token is predicted and never read.
                raise ContextError(beyond_context(f"request {index}", item.inputs, name, window, "shorten it"))
    if vocabulary is not None and encoded:
        _check_vocabulary(encoded, vocabulary, name)


def _check_vocabulary(encoded: Sequence[Encoded], vocabulary: int, name: str) -> None:
    flat = np.concatenate([item.ids for item in encoded])
    wrong = np.flatnonzero((flat < 0) | (flat >= vocabulary))
    if len(wrong):
        index = int(np.searchsorted(np.cumsum([len(item.ids) for item in encoded]), wrong[0], side="right"))
        raise DataError(
            f"token id {flat[wrong[0]]} is not in the vocabulary of {name} (0 to {vocabulary - 1})",
            field=f"request {index}",
        )
