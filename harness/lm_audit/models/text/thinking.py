"""Thought and answer of a reply: what a model writes for itself before it answers is never its answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache

from lm_audit.models.text.quotation import is_quoted_alone, line_before, opens_quotation, quotations
from lm_audit.models.text.thought_markers import MARKERS, ThoughtMarkers
from lm_audit.models.text.tokenizer import Tokenizer

_TOKEN = re.compile(r"<\|[^<>|]+\|>")
_CHANNEL_TOKENS = ("<|channel|>", "<|message|>", "<|start|>", "<|end|>")
_WRAPPERS = (
    ("<answer>", "</answer>"),
    ("<response>", "</response>"),
    ("<output>", "</output>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<solution>", "</solution>"),
    ("<final_answer>", "</final_answer>"),
    ("<conclusion>", "</conclusion>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("<|begin_of_box|>", "<|end_of_box|>"),
    ("<think_on>", "</think_on>"),  # KAT: what its judge decided, behind which nothing closes
    ("<think_off>", "</think_off>"),
    ("", "[END FINAL RESPONSE]"),
)
"""What some models put around the answer that follows their thought."""


@dataclass(frozen=True)
class Reply:
    """A reply taken apart. ``thought``: ``None`` where it has none. ``answer``: ``None`` where it never came."""

    thought: str | None
    answer: str | None


def split_reply(
    text: str, *, opened: ThoughtMarkers | None = None, reasoning: str | None = None, cut: bool = False
) -> Reply:
    """The thought in a reply and the answer outside it; without a thought the answer is the whole text, unchanged.

    ``opened`` are the markers with which the prompt had opened the thought already (:func:`opened_thought`).
    ``reasoning`` is a thought that came apart from the text (``reasoning_content`` of an API). ``cut``: the text ended
    at a limit, so that nothing behind a thought, or half an opening marker, is no answer either. A thought that is not
    closed has no answer. Text before a closing marker that nothing opened is thought, since the prompt may have opened
    it. An opening counts at the start of a line or of a sentence only, or in a pair at the end of a text; a text may
    speak of the marker, and does where it quotes it (``quotation``), has both as words of a sentence, or the closing
    alone in its first line, or shows them with dots between. What wraps the answer may stand around the thought too.
    """
    if reasoning is not None:
        if reasoning.strip() and not text.strip():
            return Reply(reasoning.strip(), None)
        opened = None  # whoever took the thought out took its end as well
    thoughts: list[tuple[int, int]] = []
    outside: list[tuple[int, int]] = []
    open_markers, start, end = opened, 0, len(text.rstrip())
    passed: tuple[re.Match[str], ThoughtMarkers] | None = None  # an opening inside a line
    named = False  # whether a sentence has both markers as its words
    spoken_of = _SpokenOf(text)
    for marker, markers in _found(text, opened):
        opening = marker.lastgroup == "opening"
        if marker.start() < start:
            continue
        if open_markers is not None:
            if opening or markers != open_markers or is_quoted_alone(text, *marker.span(), start):
                continue
            thoughts.append((start, marker.start()))
            open_markers = None
        elif spoken_of.quotes(marker, start):
            continue
        elif opening:
            shown = _is_shown(text, marker, markers, start)
            if shown or not _begins_part(text, marker.start()) or _is_named(text, marker, markers):
                passed = passed if passed and passed[0].start() >= start else (marker, markers)
                continue
            outside.append((start, marker.start()))
            open_markers = markers
        else:
            paired = passed[0] if passed and passed[1] == markers and passed[0].start() >= start else None
            spoken = paired and (_is_a_word(text, paired) or _is_named(text, paired, markers))
            shown = paired is not None and _is_shown(text, paired, markers, start)
            in_prose = _is_in_a_sentence(text, marker, start, paired)
            if shown or in_prose or (spoken and _is_a_word(text, marker)):
                passed, named = None, True
                continue
            if paired and (thoughts or marker.end() >= end):
                outside.append((start, paired.start()))
                thoughts.append((paired.end(), marker.start()))
            else:
                thoughts, outside = [(0, marker.start())], []
        start = marker.end()
    if open_markers is not None and not cut and (closing := _closed_by_another(text, start, open_markers)) is not None:
        thoughts.append((start, closing.start()))
        open_markers, start = None, closing.end()
    if open_markers is not None and (wrapped := _WRAPPED_END.search(text, start)) is not None:
        thoughts.append((start, wrapped.start()))
        open_markers, start = None, wrapped.start()
    thought = [text[first:last] for first, last in thoughts]
    if open_markers is not None:
        return Reply(_joined([reasoning, *thought, text[start:]]), None)
    if not thoughts and reasoning is None:
        begun = text.strip()
        if cut and not named and _opened_in_words(begun):
            return Reply(begun, None)
        return Reply(None, None if cut and _half_opened(begun) else text)
    said = [text[first:last] for first, last in outside]
    answer = text if not thoughts else unwrapped("".join([*said, text[start:]]))
    return Reply(_joined([reasoning, *thought]), None if cut and not answer.strip() else answer)


def closed_thoughts(closed: Collection[bool]) -> list[str]:
    """What is said of replies whose thought was closed at its limit: nothing where none was."""
    return [f"{sum(closed)} of {len(closed)} thoughts were closed at --thinking-tokens"] if any(closed) else []


class _SpokenOf:
    """The markers outside of every thought that a text only quotes."""

    def __init__(self, text: str):
        self._text = text
        self._places: Iterator[tuple[int, int]] = quotations(text)
        self._place = next(self._places, None)
        self._start = 0
        self._ends = len(text) - len(text.lstrip()), len(text.rstrip())
        self._opened: set[tuple[int, int]] = set()

    def quotes(self, marker: re.Match[str], start: int) -> bool:
        """Whether a marker is quoted; ``start`` is where the last thought ended.

        A closing is where it is quoted alone, or in one quotation with an opening: code in a thought that nothing
        opened may have no end.
        """
        first, last = marker.span()
        # Markers come in order, so that each place is looked at once.
        if start != self._start:
            self._start = start
            self._pass(start)
            if self._place is not None and self._place[0] < start:
                # What is quoted across the end of the last thought is read anew behind it.
                self._places = quotations(self._text, start)
                self._place = next(self._places, None)
        self._pass(last - 1)
        place = self._place if self._place is not None and self._place[0] < first else None
        if place is not None and not start and self._is_all(*place):
            place = None  # A block of code that is the whole text quotes nothing: it is how the text is written down.
        if marker.lastgroup != "opening":
            return place in self._opened or is_quoted_alone(self._text, first, last, start)
        if place is not None:
            self._opened.add(place)
        return place is not None

    def _is_all(self, first: int, last: int) -> bool:
        return first <= self._ends[0] and self._ends[1] <= last

    def _pass(self, end: int) -> None:
        """On to the first place that ends behind ``end``."""
        while self._place is not None and self._place[1] <= end:
            self._place = next(self._places, None)


def _is_a_word(text: str, marker: re.Match[str]) -> bool:
    """Whether a marker stands between white space within a line, as a word of a sentence does."""
    before = line_before(text, marker.start())
    return bool(before.strip()) and before[-1:].isspace() and text[marker.end() : marker.end() + 1] in tuple(" ,.;:)")


def _is_named(text: str, opening: re.Match[str], markers: ThoughtMarkers) -> bool:
    """Whether a text that begins with an opening speaks of it: a sentence goes on behind it in small letters, and has
    the closing as a word of its own before a sign ("by </think>."), or next to the opening ("<think> and </think>").
    """
    said = _GOES_ON.match(text, opening.end())
    closing = said and _compiled(markers.closing).search(text, opening.end())
    if not said or not closing or "\n" in (between := text[opening.end() : closing.start()]):
        return False
    return _is_a_word(text, closing) and (
        text[closing.end() : closing.end() + 1] in tuple(".,;:)") or between == said[0]
    )


def _is_shown(text: str, opening: re.Match[str], markers: ThoughtMarkers, start: int) -> bool:
    """Whether a text that says something before shows the markers with dots for a thought: "<think>...</think>".

    Within a sentence they may have nothing between them.
    """
    dots = _DOTS.match(text, opening.end())
    return (
        dots is not None
        and _compiled(markers.closing).match(text, dots.end()) is not None
        and (bool(dots["dots"]) or not _begins_part(text, opening.start()))
        and bool(text[start : opening.start()].strip())
    )


_DOTS = re.compile(r"(?:\s|\\n)*(?P<dots>\.{2,3}|…{1,2})?(?:\s|\\n)*")


def _is_in_a_sentence(text: str, closing: re.Match[str], start: int, opening: re.Match[str] | None) -> bool:
    """Whether a sentence in a text's first line goes on behind a closing that ends a pair within it, or that nothing
    opened and that is a word there ("The </think> tag closes").
    """
    if not _GOES_ON.match(text, closing.end()):
        return False
    before = text[start : closing.start()].lstrip()
    return "\n" not in before and (opening is not None or (before[-2:-1].isalnum() and before[-1:] == " "))


_GOES_ON = re.compile(r" (?:(?:and|or) |[a-z])")
"""A sentence in small letters, of a whole "and" or "or" all of it."""

_WRAPPED_END = re.compile(
    "|".join(
        rf"^[ \t]*{re.escape(opening)}(?:(?!{re.escape(opening)}).)*{re.escape(closing)}\s*\Z"
        for opening, closing in _WRAPPERS
        if opening
    ),
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""A whole answer in its wrapping at the end of a text, behind a thought that nothing closed."""

_ANY_CLOSING = re.compile(
    r"(?:<|&lt;)\s*\\?/\s*(?:think|thinking|thoughts?|reasoning|reason|analysis|scratchpad)\s*(?:>|&gt;)"
    r"|<\|(?:/|end_(?:of_)?)(?:think(?:ing)?|thought|reasoning)\|>|\[/(?:THINK(?:ING)?|THOUGHT|REASONING)\]",
    re.IGNORECASE,
)


def _closed_by_another(text: str, start: int, markers: ThoughtMarkers) -> re.Match[str] | None:
    """The closing of another spelling behind a tag that its own never closes, in a reply that came to its end."""
    if markers.whole or not markers.written.startswith(("<", "[")):
        return None
    closings = _ANY_CLOSING.finditer(text, start)
    return next((one for one in closings if not is_quoted_alone(text, *one.span(), start)), None)


def _half_opened(begun: str) -> bool:
    return len(begun) > 1 and not begun[0].isalnum() and opening_state(begun) is True


def _opened_in_words(begun: str) -> bool:
    """Whether a reply begins with an opening that counts only with its closing, which may have come behind the limit.

    A word of prose ("analysis") is one where the next word is joined to it, as special tokens left out join them.
    """
    return any(
        (found := _in_words(one).match(begun)) is not None
        and not (found[0].isalpha() and not begun[found.end() : found.end() + 1].isalnum())
        for one in MARKERS
    )


@cache
def _in_words(markers: ThoughtMarkers) -> re.Pattern[str]:
    """The opening without its closing."""
    return _compiled(markers.opening) if markers.whole else re.compile(re.escape(markers.written.rstrip()))


def opened_thought(prompt: str) -> ThoughtMarkers | None:
    """The markers by which a prompt's end opens a thought, ``None`` where it does not."""
    opened = None
    for marker, markers in _found(prompt, None):
        opened = markers if marker.lastgroup == "opening" and not prompt[marker.end() :].strip() else None
    return opened


def left_open(text: str) -> ThoughtMarkers | None:
    """The markers of a thought that a template's own text opens and does not close."""
    opened = next((one for one in MARKERS if not one.whole and text.rstrip().endswith(one.written.rstrip())), None)
    if opened is not None:
        return opened
    for marker, markers in _found(text, None):
        if marker.lastgroup == "opening":
            opened = opened or markers
        elif markers == opened:
            opened = None
    return opened or next((one for one in MARKERS if one.whole and _ends_in(one, text)), None)


def _ends_in(markers: ThoughtMarkers, text: str) -> bool:
    """Whether a text ends in words that open a thought, on a line of their own or right behind a token."""
    if markers.written.isalpha():
        return False
    return _compiled(markers.opening.replace(r"\A", r"(?:^|(?<=[>\]|]))[ \t]*") + r"\s*\Z").search(text) is not None


def opening_state(text: str) -> ThoughtMarkers | bool:
    """What a reply that begins so may become: its thought's markers, ``True`` (may yet open one), or ``False``."""
    begun = text.lstrip()
    for markers in MARKERS:
        if not markers.whole and _compiled(markers.opening).match(begun):
            return markers
    for escaped in ("&lt;", "\\u003c", "＜"):
        begun = begun.replace(escaped, "<", 1) if begun.startswith(escaped) else begun
    return any(not one.whole and one.written.casefold().startswith(begun.casefold()) for one in MARKERS)


def closing_found(markers: ThoughtMarkers, text: str, since: int = 0) -> bool:
    """Whether the closing marker ends in a text behind ``since``; one that is, or may yet be, quoted does not count.

    The text may go on.
    """
    closings = _compiled(markers.closing).finditer(text)
    return any(
        not (is_quoted_alone(text, *one.span()) or (one.end() == len(text) and opens_quotation(text, one.start())))
        for one in closings
        if one.end() > since
    )


def closings_in(text: str) -> list[tuple[ThoughtMarkers, int]]:
    """Every closing marker of a text that it does not only quote, in order, with the place behind it."""
    closings: list[tuple[ThoughtMarkers, int]] = []
    open_markers, start, spoken_of = None, 0, _SpokenOf(text)
    for marker, markers in _found(text, None):
        opening = marker.lastgroup == "opening"
        if open_markers is not None:
            if opening or is_quoted_alone(text, *marker.span(), start):
                continue
        elif spoken_of.quotes(marker, start):
            continue
        if opening:
            open_markers = markers if _begins_part(text, marker.start()) else None
            continue
        closings.append((markers, marker.end()))
        if open_markers in (None, markers):
            open_markers, start = None, marker.end()
    return closings


def may_think(tokenizer: Tokenizer, template: str | None) -> bool:
    """Whether a model's template or vocabulary knows any of the markers."""
    named = [one.written.rstrip() for one in MARKERS if not one.whole]
    if template and any(text in template for text in named):
        return True
    added: dict[str, int] = getattr(tokenizer, "get_added_vocab", dict)()
    return any(one.name in added for one in MARKERS)


def marker_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Special tokens that mark a thought: decoding a reply must not hide them."""
    special = {
        str(token): int(number)
        for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items()
        if getattr(token, "special", False)
    }
    texts = {text for one in MARKERS for text in (one.written.strip(), one.close.strip()) if not one.whole}
    # Some families close with several special tokens, of which others have one at the end of every turn.
    template = str(getattr(tokenizer, "chat_template", None) or "")
    for one in MARKERS:
        if one.written.strip() in special or (_TOKEN.match(one.written) and one.written.strip() in template):
            texts |= {*_TOKEN.findall(one.written), *_TOKEN.findall(one.close)}
    texts |= {text for pair in _WRAPPERS for text in pair}
    if _CHANNEL_TOKENS[0] in special:
        texts |= set(_CHANNEL_TOKENS)
    if "<|channel>" in special:
        texts |= {"<|channel>", "<channel|>"}
    return frozenset(number for text, number in special.items() if text in texts)


def _found(text: str, opened: ThoughtMarkers | None) -> Iterator[tuple[re.Match[str], ThoughtMarkers]]:
    """Every marker of the text, in order."""
    found = [
        (match, markers)
        for markers in MARKERS
        if not markers.whole or markers == opened or _is_whole(markers, text)
        for match in _both(markers).finditer(text)
    ]
    # Of two that begin at one place the longer one counts.
    return iter(sorted(found, key=lambda pair: (pair[0].start(), -pair[0].end())))


def _is_whole(markers: ThoughtMarkers, text: str) -> bool:
    begun = text.lstrip()
    return _compiled(markers.opening).match(begun) is not None and _compiled(markers.closing).search(begun) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE | (re.IGNORECASE if not pattern.startswith((r"\A", "assistant")) else 0))


@cache
def _both(markers: ThoughtMarkers) -> re.Pattern[str]:
    opening = markers.opening.replace(r"\A", r"\A\s*")
    flags = re.MULTILINE | (0 if markers.whole else re.IGNORECASE)
    return re.compile(f"(?P<opening>{opening})|(?P<closing>{markers.closing})", flags)


def _begins_part(text: str, at: int) -> bool:
    """Whether a line or a sentence begins there."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    if any(before.strip().casefold() == opening.casefold() for opening, _ in _WRAPPERS):
        return True
    return _SENTENCE_END.search(before[-20:]) is not None and _NUMBER.fullmatch(before) is None


_NUMBER = re.compile(r"\s*\(?[0-9]{1,3}[.)]\s*")
"""That of an entry in a list."""
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»」)）\]*_]*\s*\Z")


def _joined(parts: list[str | None]) -> str:
    return "\n".join(part.strip() for part in parts if part is not None and part.strip())


_TAGGED = re.compile(r"\s*(?:<(\w{1,40})>(?:(?!<\1>)[\s\S])*?</\1>\s*|<\w{1,40}>\s*)+(?=<)")
"""Other parts before the wrapped answer, each in a tag of its own."""
_WHOLE = re.compile(r"<(?P<tag>\w{1,40})>(?P<inner>(?:(?!</?(?P=tag)>)[\s\S])*)</(?P=tag)>")
"""A whole answer in one tag of any name."""


_ENDED = re.compile(r"(?:\s*(?:<[|｜][^<>|｜\s]{1,40}[|｜]>|</s>))+\s*\Z")
"""Tokens of a turn's end that the outputs of other systems still hold; they may hide the end of a wrapping."""


def unwrapped(answer: str) -> str:
    """An answer without white space around it and without what some models put around it."""
    answer = _ENDED.sub("", answer).strip()
    if whole := _WHOLE.fullmatch(answer):
        return unwrapped(whole["inner"])
    before = _TAGGED.match(answer)
    if before and (wrapped := _WRAPPED_END.search(answer, before.end())) and wrapped.start() == before.end():
        answer = answer[before.end() :]
    for opening, closing in _WRAPPERS:
        if opening and answer.casefold().endswith(closing.casefold()) and opening.casefold() not in answer.casefold():
            return unwrapped(answer[: -len(closing)])  # It was opened in the thought.
        if answer[: len(opening)].casefold() == opening.casefold():
            inner = answer[len(opening) :]
            ended = inner[-len(closing) :].casefold() == closing.casefold()
            inner = (inner[: -len(closing)] if ended else inner).strip()
            return unwrapped(inner) if opening else inner
    return answer
