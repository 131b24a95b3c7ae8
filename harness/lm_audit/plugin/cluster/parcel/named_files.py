"""Which files and folders options name: data travel to the workers, models are looked for on each node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lm_audit.errors import DataError, UsageError
from lm_audit.plugin.cluster.parcel.project_files import WEIGHTS, all_files
from lm_audit.plugin.cluster.parcel.secret_files import refuse_secret
from lm_audit.plugin.options.named_values import named_values
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.shared.home import from_home
from lm_audit.shared.textfiles import OnDisk, on_disk, read_toml

NAMED = "_named_files"


@dataclass(frozen=True)
class NamedPath:
    """A value of an option that is there on this machine: how it is spelt, what it is, whether it travels, and the
    part of it that is meant.
    """

    option: str
    text: str
    path: Path
    travels: bool
    parts: tuple[str, ...] = ()

    def files(self) -> Iterator[tuple[Path, Path]]:
        """Each file that travels, and its path below :attr:`path`; ``UsageError`` for one that looks like a key."""
        for file in [self.path] if self.path.is_file() else all_files(self.path):
            refuse_secret(file, f"{self.option} {self.text}")
            yield file, file.relative_to(self.path)


def named_paths(options: RunOptions, folder: Path) -> list[NamedPath]:
    """What ``--data`` and the audits' own options name, relative to ``folder``; each spelling once.

    Folders and files of weights do not travel.
    """
    found: dict[str, NamedPath] = {}
    for option, value, is_data in named_values(options):
        for text in (value, value.partition("=")[2]):  # PATH or NAME=PATH
            there = _there(text, folder)
            if there is not None:
                path = there.path
                if is_data:
                    _refuse_files_in(path, f"{option} {text}")
                travels = is_data and not _holds_weights(path)
                found.setdefault(text, NamedPath(option, text, path, travels, there.parts))
                break
    return list(found.values())


def _refuse_files_in(path: Path, named: str) -> None:
    """``UsageError`` for a TOML file with a list that stands in a file beside it: that one would stay behind."""
    if path.suffix.lower() != ".toml" or not path.is_file():
        return
    try:
        sources = list(_from_fields(read_toml(path)))
    except DataError:  # told where it is read
        return
    there = [source for source in sources if _there(source, path.parent) is not None]
    if there:
        raise UsageError(
            f"{named} takes a list from {there[0]!r}, a file that does not travel with --ray: write the list into the "
            "TOML file, or name a data set of the hub"
        )


def _from_fields(value: object) -> Iterator[str]:
    """Every ``from = "..."`` within a TOML document."""
    inner: list[object] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict) and isinstance(value.get("from"), str):
        yield value["from"]
    for part in inner:
        yield from _from_fields(part)


def _there(text: str, folder: Path) -> OnDisk | None:
    try:
        named = on_disk(folder / from_home(text))
        path = named.path.resolve()
        inside = path.exists() and path not in (folder.resolve(), *folder.resolve().parents)
        return OnDisk(path, named.parts) if text and inside else None
    except (OSError, ValueError, RuntimeError):
        return None


def _holds_weights(path: Path) -> bool:
    files = [path] if path.is_file() else path.iterdir()
    return any(file.suffix in WEIGHTS for file in files)
