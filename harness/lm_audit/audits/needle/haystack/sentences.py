"""Where sentences end, by punctuation and a list of English abbreviations; needs no download.

English and Chinese foremost; the full stops of Khmer, Burmese, Tibetan, Hindi, Urdu, Arabic and Amharic, and the spaces
of Thai and Lao, which stand there in a full stop's place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(
    r"""(?P<line>\n)
    | (?P<chinese>[。！？]+[”’」』）》"']*)
    | (?P<other>[។៕။།।॥۔؟።]+)
    | (?P<space>(?<=[\u0e00-\u0eff])\ +(?=[\u0e00-\u0eff]))
    | (?P<western>[.!?…]+[)\]"'”’»_*]*)(?=\s|$)""",
    re.VERBOSE,
)
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\S+",
        "mr mrs ms dr st messrs mme mlle prof rev hon col capt gen lieut lt sgt jr sr esq vs etc viz cf ed "
        "eds vol no nos p pp fig figs sec ch dept univ inc ltd co corp jan feb mar apr jun jul aug sept oct nov dec "
        "e.g i.e a.m p.m",
    )
)
_SENTENCE_MAY_FOLLOW = re.compile(r"""\s+["'“‘(\[_*«]*[^\W_a-z]|\s*$""")
_LAST_WORD = re.compile(r"[\w.]+$")


def sentence_ends(text: str) -> list[int]:
    """Offsets just after each sentence, ascending; the last is the end of the text.

    A full stop ends none after an abbreviation, an initial or before a small letter. A line break always ends one.
    """
    ends = [*_ends(text)]
    if text and (not ends or ends[-1] != len(text)):
        ends.append(len(text))
    return ends


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without white space at their ends."""
    begin, sentences = 0, []
    for end in sentence_ends(text):
        sentences.append(text[begin:end].strip())
        begin = end
    return [sentence for sentence in sentences if sentence]


def _ends(text: str) -> Iterator[int]:
    last = 0
    for mark in _END.finditer(text):
        # A line break right after a full stop ends no further sentence.
        if (mark["western"] and not _is_end(text, mark)) or not text[last : mark.start() + 1].strip(" \n"):
            continue
        last = mark.start() if mark["line"] else mark.end()
        yield last


def _is_end(text: str, mark: re.Match[str]) -> bool:
    if _SENTENCE_MAY_FOLLOW.match(text, mark.end()) is None:
        return False
    if not mark.group().startswith(".") or mark.group().startswith(".."):
        return True
    word = _LAST_WORD.search(text, max(0, mark.start() - 20), mark.start())
    return word is None or not _is_abbreviation(word.group())


def _is_abbreviation(word: str) -> bool:
    initial = len(word) == 1 and word.isupper() and word != "I"
    return initial or word.lower() in _ABBREVIATIONS
