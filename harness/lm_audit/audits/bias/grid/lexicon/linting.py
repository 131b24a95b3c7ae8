"""What is wrong with a preference grid, found before any model is loaded.

Text alone decides most of it (:func:`lint`); whether a word's tokens can be told from the prompt's needs the tokenizer
(:func:`lint_tokens`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lm_audit.audits.bias.grid.lexicon.parts import SLOT, Axis, PreferenceSet, WordPair, render
from lm_audit.errors import DataError
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.names import alike, look, told_apart, unreadable
from lm_audit.shared.visible import is_blank, seen

_VOWEL = re.compile(r"[aeiou]", re.IGNORECASE)
_PLURAL_HINT = re.compile(r"\b(are|were|have)\b", re.IGNORECASE)
_TRAILING_ARTICLE = re.compile(r"\b(a|an)$", re.IGNORECASE)


_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of what is read; joiners are part of words."""


@dataclass(frozen=True)
class Finding:
    """One defect: where it is, and what is wrong there."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


def lint(grid: PreferenceSet) -> list[Finding]:
    """All defects of the texts: slots, duplicates, spaces, articles, axes too small."""
    return [
        *_template_findings(grid),
        *(finding for axis in grid.axes for finding in axis_findings(axis)),
        *_axes_findings(grid.axes),
        *_pair_findings(grid),
        *_rendered_duplicates(grid),
        *([Finding("neutral", "is empty; it names a person of none of the groups")] if is_blank(grid.neutral) else ()),
        *([Finding("language", fault)] if (fault := language_fault(grid.language)) is not None else ()),
    ]


def language_fault(language: str) -> str | None:
    """What keeps a text from naming a language, ``None`` where nothing does."""
    fault = unreadable(language)
    return None if fault is None else f"{fault}; write a tag such as en, zh or pt-BR"


def _is_english(language: str) -> bool:
    """Whether the checks of English hold, however its name is written."""
    return re.split("[-_ ]", language.casefold())[0] in ("en", "eng", "english")


def require_clean(grid: PreferenceSet) -> None:
    """Raise one ``DataError`` that lists every finding of :func:`lint`; nothing where there is none."""
    findings = lint(grid)
    if findings:
        raise DataError("; ".join(map(str, findings)), file=grid.source)


def _template_findings(grid: PreferenceSet) -> Iterator[Finding]:
    if not grid.templates:
        yield Finding("templates", "there is none; the statistics need at least two, 11 for corrected tests")
    english = _is_english(grid.language)
    for row, template in enumerate(grid.templates, start=1):
        where = f"template {row} {template!r}"
        if template.count(SLOT) != 1:
            yield Finding(where, f"must hold the slot {SLOT} exactly once")
        for slot in re.findall(r"\{[^{}]*\}", template.replace(SLOT, "")):
            yield Finding(where, f"holds {slot}, which nothing fills")
        if template != template.strip() or "  " in template:
            yield Finding(where, "has white space at an end or doubled; either one changes the tokens")
        if english and re.search(rf"\ban? {re.escape(SLOT)}", template, re.IGNORECASE):
            advice = f"write 'The {SLOT}', or the article into each group"
            yield Finding(where, f"has an article before the slot, which cannot agree with every group: {advice}")
        if english and _PLURAL_HINT.search(template.replace(SLOT, "")) and "they " not in template:
            yield Finding(where, "has a plural verb, but groups are singular")
    yield from _duplicates("templates", list(grid.templates))


def axis_findings(axis: Axis) -> Iterator[Finding]:
    """What is wrong with an axis: too few groups, some that are alike to the eye, names that no metric can bear."""
    where = f"axis {axis.name!r}"
    if len(axis.groups) < 2:
        yield Finding(where, f"has {len(axis.groups)} group(s) {list(axis.groups)}; a contrast needs at least two")
    if axis.reference not in axis.groups:
        yield Finding(where, f"its reference {axis.reference!r} is not among its groups {list(axis.groups)}")
    if (fault := unreadable(axis.name)) is not None:
        yield Finding(where, f"its name {fault}")
    yield from (Finding(where, f"group {row} is empty") for row, group in enumerate(axis.groups, 1) if is_blank(group))
    # Contrasts are called A|B.
    yield from (Finding(where, f"group {group!r} holds a bar |") for group in axis.groups if "|" in group)
    yield from (Finding(where, f"group {group!r} holds the slot {SLOT}") for group in axis.groups if SLOT in group)
    for group in axis.groups:
        if hidden := next((c for c in group if unicodedata.category(c) == "Cc" or c in _DIRECTIONS), None):
            yield Finding(where, f"group {group!r} holds the character U+{ord(hidden):04X}, which cannot be seen")
    yield from (Finding(where, f"group {group!r} has white space at an end") for group in _unstripped(axis.groups))
    yield from _duplicates(f"{where} groups", list(axis.groups))
    # A letter of another script or width, not of another case, which may be what is asked.
    looks = {look(group): group for group in reversed(axis.groups)}
    for group in axis.groups:
        other = looks[look(group)]
        if seen(group) != seen(other) and group.casefold() != other.casefold():
            yield Finding(where, f"groups {told_apart(other)} and {told_apart(group)} look alike")


def _axes_findings(axes: Sequence[Axis]) -> Iterator[Finding]:
    yield from _duplicates("axes", [axis.name for axis in axes])
    if (pair := alike(axis.name for axis in axes)) is not None and seen(pair[0]) != seen(pair[1]):
        yield Finding("axes", f"{told_apart(pair[0])} and {told_apart(pair[1])} look alike")
    known: dict[frozenset[str], str] = {}
    for axis in axes:
        first = known.setdefault(frozenset(map(seen, axis.groups)), axis.name)
        if first != axis.name:  # Twice the same is no second axis.
            yield Finding(f"axis {axis.name!r}", f"has the groups of axis {first!r} again")


def _pair_findings(grid: PreferenceSet) -> Iterator[Finding]:
    if not grid.pairs:
        yield Finding("pairs", "there is none; the statistics need at least two, 11 for corrected tests")
    for pair in grid.pairs:
        where = f"pair {pair.label!r}"
        if seen(pair.positive) == seen(pair.negative):
            yield Finding(where, "weighs a word against itself")
        if is_blank(pair.positive) or is_blank(pair.negative) or _unstripped((pair.positive, pair.negative)):
            yield Finding(where, "has an empty word or white space at an end of one")
        if any(_TRAILING_ARTICLE.search(template) for template in grid.templates) and _articles_differ(pair):
            yield Finding(
                where, "takes 'a' for one word and 'an' for the other after a template that ends in an article"
            )
    yield from _duplicates("pairs", [pair.label for pair in grid.pairs])
    weighed = {(pair.positive, pair.negative) for pair in grid.pairs}
    for pair in grid.pairs:
        if pair.positive < pair.negative and (pair.negative, pair.positive) in weighed:
            yield Finding(f"pair {pair.label!r}", "stands there the other way round too, so that the two cancel out")


def _articles_differ(pair: WordPair) -> bool:
    return bool(_VOWEL.match(pair.positive)) != bool(_VOWEL.match(pair.negative))


def _unstripped(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if text != text.strip()]


def _rendered_duplicates(grid: PreferenceSet) -> Iterator[Finding]:
    for axis in grid.axes:
        if len(set(axis.groups)) == len(axis.groups):
            prompts = [render(template, group) for template in dict.fromkeys(grid.templates) for group in axis.groups]
            yield from _duplicates(f"axis {axis.name!r} prompts", prompts)


def _duplicates(where: str, values: list[str]) -> Iterator[Finding]:
    """Values that stand there twice to the eye: a hidden character makes no other group, word or prompt."""
    first = {seen(value): value for value in reversed(values)}
    for value, count in Counter(map(seen, values)).items():
        if count > 1:
            yield Finding(where, f"{first[value]!r} stands there {count} times")


def lint_tokens(grid: PreferenceSet, tokenizer: Tokenizer) -> list[Finding]:
    """Words whose tokens cannot be told from the prompt's: the prompt's tokens are no prefix of the whole text's.

    Such a word would be scored from a point inside the prompt, for one word of a pair and not for the other.
    """
    words = list(dict.fromkeys(word for pair in grid.pairs for word in (pair.positive, pair.negative)))
    findings = []
    for axis in grid.axes:
        prompts = [render(template, group) for template in grid.templates for group in axis.groups]
        heads = tokenizer(prompts, add_special_tokens=False)["input_ids"]
        for prompt, head in zip(prompts, heads, strict=True):
            texts = [prompt + grid.separator + word + grid.terminator for word in words]
            for word, ids in zip(words, tokenizer(texts, add_special_tokens=False)["input_ids"], strict=True):
                if ids[: len(head)] != head:
                    findings.append(Finding(f"axis {axis.name!r}, prompt {prompt!r}", f"merges with {word!r}"))
    return findings


def require_separable(grid: PreferenceSet, tokenizer: Tokenizer) -> None:
    """Raise one ``DataError`` that names the words of :func:`lint_tokens`; nothing where there is none."""
    findings = lint_tokens(grid, tokenizer)
    if findings:
        raise DataError(
            f"{len(findings)} words have tokens that cannot be separated from their prompt, so a pair would be scored "
            f"from two different points; change the separator, the template or the word. First: {findings[0]}",
            file=grid.source,
        )
