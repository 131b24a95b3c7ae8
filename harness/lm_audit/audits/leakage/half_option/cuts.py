"""Where an option is cut in two, and what the model reads and must continue there, as token ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.leakage.half_option.prefixes import half_option_prefixes
from lm_audit.audits.leakage.items.item import Item
from lm_audit.models.text.chat import ChatTemplate
from lm_audit.models.text.token_spans import encode_texts
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from lm_audit.models.scoring.boundary import TextSplitter

Cut = Literal["source", "token", "word"]
Ids = NDArray[np.int64]

REQUEST = "Write out a multiple-choice question of an examination with its options."
"""What the user asks for in template mode."""

_ADVICE = "half-option completion cuts between two: use --leakage-cut word, or for a served model --tokenizer NAME=SPEC"


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """One option cut in two.

    ``context``: token ids of the text before the cut by itself (no BOS). ``whole``, ``start``: ids of the text to the
    option's end, and the first of them that belongs to the suffix; a token over the cut belongs to it, and so does
    white space before it. ``boundary``: "aligned" where the context's tokens begin ``whole``, else "split".
    """

    prefix: str
    suffix: str
    context: Ids
    whole: Ids
    start: int

    @property
    def aligned(self) -> bool:
        n = len(self.context)
        return n < len(self.whole) and bool((self.whole[:n] == self.context).all())

    @property
    def boundary(self) -> str:
        return "aligned" if self.aligned else "split"


def cut_items(
    items: Sequence[Item], splitter: TextSplitter, tokenizer: Tokenizer, cut: Cut, opening: str
) -> list[Probe]:
    """The probes of all options of all items, in order. ``opening`` stands before every text (a chat template's)."""
    pairs = [pair for item in items for pair in _text_pairs(item, cut)]
    prefixes, suffixes = [opening + prefix for prefix, _ in pairs], [suffix for _, suffix in pairs]
    wholes = [prefix + suffix for prefix, suffix in zip(prefixes, suffixes, strict=True)]
    if cut == "token":
        return list(_token_cuts(items, wholes, tokenizer, opening))
    contexts = splitter.ids(prefixes)
    splits = splitter.split(wholes, [len(prefix.rstrip()) for prefix in prefixes])
    return [
        Probe(prefix, suffix, context, ids, start)
        for prefix, suffix, context, (ids, start, _) in zip(prefixes, suffixes, contexts, splits, strict=True)
    ]


def _text_pairs(item: Item, cut: Cut) -> list[tuple[str, str]]:
    pairs = half_option_prefixes(item.question, item.options)
    if cut != "word":
        return pairs
    return [_moved(pair, option) for pair, option in zip(pairs, item.options, strict=True)]


def _moved(pair: tuple[str, str], option: str) -> tuple[str, str]:
    whole, head = pair[0] + pair[1], len(pair[0]) + len(pair[1]) - len(option)
    at = word_cut(option)
    # Nothing of the option is left before the cut: its leading space then belongs to what must follow.
    place = head + at if at else head - 1
    return whole[:place], whole[place:]


def word_cut(option: str) -> int:
    """The place (characters before it) between two words that is nearest to the middle; 0 where there is none.

    A word begins at a space before it; every character of a script that is written without spaces is a word.
    """
    middle = len(option) / 2
    places = [i for i in range(1, len(option)) if _between_words(option[i - 1], option[i])]
    return min(places, key=lambda place: (abs(place - middle), place), default=0)


def _between_words(left: str, right: str) -> bool:
    if left.isspace():
        return False
    return right.isspace() or (_unspaced(left) and _unspaced(right))


def _unspaced(character: str) -> bool:
    return unicodedata.category(character) == "Lo" and ord(character) > 0x0E00


def _token_cuts(items: Sequence[Item], wholes: Sequence[str], tokenizer: Tokenizer, opening: str) -> Iterator[Probe]:
    """Cuts between two tokens of the text itself, nearest to the option's middle.

    ``ModelError`` for a tokenizer that does not tell the places of its tokens.
    """
    lengths = [len(option) for item in items for option in item.options]
    for encoded, length in zip(encode_texts(tokenizer, wholes, advice=_ADVICE), lengths, strict=True):
        whole, spans = encoded.text, encoded.offsets
        begin = len(whole) - length
        at = _nearest_boundary(spans, begin, begin + length // 2, whole)
        place = spans[at][0] if at < len(spans) else len(whole)
        # Offsets of some tokenizers leave out the space before a word, which is part of its token.
        while place > 0 and whole[place - 1] == " " and spans[at - 1][1] < place:
            place -= 1
        array = np.array(encoded.ids, dtype=np.int64)
        yield Probe(whole[:place], whole[place:], array[:at], array, at)


def _nearest_boundary(spans: Sequence[tuple[int, int]], begin: int, middle: int, whole: str) -> int:
    """The index of the token that begins nearest to ``middle`` inside the option; of its first token if none does."""
    first = next(i for i, (_, end) in enumerate(spans) if end > begin or end == len(whole))
    clean = [i for i in range(first + 1, len(spans)) if spans[i][0] >= spans[i - 1][1]]
    return min(clean, key=lambda i: (abs(spans[i][0] - middle), i), default=first)


def chat_opening(tokenizer: Tokenizer, request: str = REQUEST, *, chat_args: Mapping[str, object] | None = None) -> str:
    """A chat template's text up to where the assistant's answer begins; the probe's prefix then opens that answer.

    ``chat_args`` are the template's; raises what :class:`lm_audit.models.text.chat.ChatTemplate` raises.
    """
    return ChatTemplate(tokenizer, chat_args).opening([{"role": "user", "content": request}])
