"""``FILE:SPLIT`` and ``FOLDER:CONFIG:SPLIT``: part of what is on the disk, named as parts of sets of the hub are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from lm_audit.errors import DataError
from lm_audit.shared.textfiles.paths import as_spelt, is_there


@dataclass(frozen=True)
class OnDisk:
    """A file or folder, and the names of the part of it that is meant; without any, all of it."""

    path: Path
    parts: tuple[str, ...] = ()

    def whole(self) -> Path:
        """The path of what has no parts; ``DataError`` where one is named."""
        chosen([()], self)
        return self.path


def on_disk(text: str | Path) -> OnDisk:
    """What a text names here: the file or folder of that name, colons and all; else, where one stands before its last
    colon or its last two, a part of that.

    Without either the text is the path of what is absent. Nothing behind a colon is an unset variable, and names none.
    """
    path = as_spelt(Path(text))
    if is_there(path):
        return OnDisk(path)
    for colons in (1, 2):
        head, *parts = str(text).rsplit(":", colons)
        if len(parts) == colons and parts[-1] and head and is_there(as_spelt(Path(head))):
            return OnDisk(as_spelt(Path(head)), tuple(filter(None, parts)))
    return OnDisk(path)


_DEFAULT = "default"
"""What the hub calls the configuration of a set that names none: all of it."""


def chosen(found: Sequence[tuple[str, ...]], named: OnDisk) -> list[int]:
    """The places of those of ``found`` that belong to the part: each of its names is one of theirs, or begins or ends
    one at ``-``, ``_`` or ``.`` where none is the same (``test-00000-of-00001``, ``virology_test``).

    All of them where no part is named. Raises ``DataError`` with what there is for a part that nothing belongs to.
    """
    places = list(range(len(found)))
    for part in named.parts:
        name = re.escape(part)
        for form in (f"{name}(-[0-9]+-of-[0-9]+)?", rf"{name}[-_.].*|.*[-_.]{name}"):
            pattern = re.compile(form, re.IGNORECASE)
            belong = [place for place in places if any(pattern.fullmatch(one) for one in found[place])]
            if belong:
                break
        else:
            if part.casefold() == _DEFAULT and part is named.parts[0]:
                continue
            names = list(dict.fromkeys("/".join(one) for one in found if one))
            there = f"it has {', '.join(names[:20])}" if names else "it is one table, without parts"
            raise DataError(f"has no part {part[:60]!r}; {there}", file=named.path)
        places = belong
    return places


_ENDING = re.compile(r"\.(csv|tsv|jsonl?|parquet|arrow|txt)(\.gz)?$", re.IGNORECASE)


def _names_in(path: PurePath) -> tuple[str, ...]:
    """The names by which a file of a folder can be chosen: of its folders, and its own without the ending."""
    return (*path.parts[:-1], _ENDING.sub("", path.name))


def chosen_files(files: Iterable[Path], named: OnDisk) -> list[Path]:
    """The files of a folder that belong to the part that is named of it; see :func:`chosen`."""
    given = list(files)
    return [given[place] for place in chosen([_names_in(one.relative_to(named.path)) for one in given], named)]
