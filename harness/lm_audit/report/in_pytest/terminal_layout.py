"""How the summary is laid out: sections of entries, merged, wrapped and cut to the lines that there are."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text


MOST = 25
"""Lines at most."""
INDENT = " " * 12


STYLES = {
    "met": "blue", "missed": "bold red", "failed": "bold red", "undecided": "yellow", "void": "bold strike",
    "crashed": "bold magenta", "error": "bold magenta", "unfinished": "magenta", "reported": "dim", "skipped": "dim",
    "found": "bold red", "cannot tell": "yellow", "answer": "bold", "": "",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One thing that is said: a sign, a word, a text, and what stands below it."""

    sign: str
    word: str
    text: str
    below: str = ""
    style: str = ""

    def written(self, layout: Layout) -> list[Text]:
        """Its lines: the text, then what stands below it, each on as many as the layout gives it."""
        from rich.text import Text

        head = Text()
        if self.sign:
            head.append(f"{self.sign} {self.word:<9} " if self.word else f"{self.sign} ", STYLES[self.style])
        bold = STYLES["answer"] if self.style in ("answer", "found") else ""
        first, *others = _wrapped(self.text, layout.width - len(head), layout.lines if self.word else 1)
        lines = [head.append(first, bold), *(Text(INDENT + line, bold) for line in others)]
        if self.below:
            below = _wrapped(self.below, layout.width - len(INDENT), layout.below)
            lines += [Text(INDENT + line, "dim") for line in below]
        return lines


@dataclass(frozen=True)
class Layout:
    """Columns of the terminal, and how many lines a text, and what stands below it, may take before it is cut."""

    width: int
    lines: int
    below: int


@dataclass
class Section:
    """Entries of one kind, of which ``shown`` are said and the others counted as ``rest``."""

    entries: list[Entry]
    rest: str
    shown: int

    def height(self, layout: Layout) -> int:
        """Lines that it takes, that of the rest included."""
        shown = sum(len(entry.written(layout)) for entry in self.entries[: self.shown])
        return shown + (len(self.entries) > self.shown)


def section(entries: Iterable[Entry], rest: str, most: int) -> Section:
    merged = _merged(list(entries))
    # One more line for the rest is as long as the entry itself.
    return Section(merged, rest, len(merged) if len(merged) <= most + 1 and merged and rest else most)


def _merged(entries: list[Entry]) -> list[Entry]:
    """No two that read alike: equal ones are one, with their number."""
    counts = Counter(entries)
    return [
        entry if many == 1 else Entry(entry.sign, entry.word, f"{entry.text} ({many} times)", entry.below, entry.style)
        for entry, many in counts.items()
    ]


def total(sections: Iterable[Section], layout: Layout) -> int:
    return sum(section.height(layout) for section in sections)


def _wrapped(text: str, width: int, lines: int) -> list[str]:
    """The text on at most so many lines of ``width`` columns; the last is cut where that is not enough."""
    from rich.cells import cell_len
    from rich.text import Text

    words, found = " ".join(text.split()).split(" "), [""]
    for at, word in enumerate(words):
        longer = f"{found[-1]} {word}" if found[-1] else word
        if cell_len(longer) <= width:
            found[-1] = longer
        elif len(found) < lines and found[-1]:
            found.append(word)
        else:
            rest = Text(" ".join([found[-1], *words[at:]]).strip())
            rest.truncate(width, overflow="ellipsis")
            return [*found[:-1], rest.plain]
    return found


def fitted(sections: list[Section], layout: Layout) -> list[Section]:
    """The sections in 25 lines: the longest gives way first, and each keeps one entry."""
    while total(sections, layout) > MOST:
        able = [section for section in sections if min(section.shown, len(section.entries)) > 1 and section.rest]
        if not able:
            break
        longest = max(able, key=lambda section: section.height(layout))
        longest.shown = min(longest.shown, len(longest.entries)) - 1
    return sections


def render(sections: Sequence[Section], layout: Layout, color: bool) -> list[str]:
    """Each entry on its lines; the model, the case and the number stand before what may be cut."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=layout.width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        _environ={},
    )
    for section in sections:
        for line in _told(section, layout):
            console.print(line, no_wrap=True, overflow="ellipsis", crop=True, highlight=False)
    out = console.file
    assert isinstance(out, io.StringIO)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def _told(section: Section, layout: Layout) -> Iterable[Text]:
    """The lines of a section; entries that read alike once they are cut are said once, with their number."""
    from rich.text import Text

    alike: dict[tuple[str, ...], list[list[Text]]] = {}
    for entry in section.entries[: section.shown]:
        lines = entry.written(layout)
        alike.setdefault(tuple(line.plain for line in lines), []).append(lines)
    for same in alike.values():
        *above, last = same[0]
        if len(same) > 1:
            mark = f" ({len(same)} alike)"
            last.truncate(layout.width - len(mark), overflow="ellipsis")
            last.append(mark)
        yield from (*above, last)
    left = len(section.entries) - section.shown
    if left > 0:
        line = Text(f"  and {left} {section.rest}")
        line.truncate(layout.width, overflow="ellipsis")
        yield line
