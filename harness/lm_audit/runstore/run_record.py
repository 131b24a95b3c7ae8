"""``run.json``: an object with a checksum, by which a reader knows that a value was changed. It is read here alone."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.runstore.inside import SETTINGS, content_inside
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.reader import parsed, unread
from lm_audit.runstore.records import SCHEMA_VERSION

CHECKSUM = "checksum"


@dataclass(frozen=True)
class RunRecord:
    """What ``run.json`` holds, less entries that are not what they must be, and what is wrong with it."""

    content: dict[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    is_there: bool = True

    @property
    def whole(self) -> dict[str, Any] | None:
        """The content where nothing is wrong with it: what is written again must not be what is left of another."""
        return self.content if self.is_there and not self.faults else None


def read_record(folder: RunFolder) -> RunRecord:
    """``run.json`` of a run; nothing is raised for one that is absent, unreadable or damaged."""
    try:
        record = parsed(content_inside(folder.path, folder.run_json.name, most=SETTINGS))
    except FileNotFoundError:
        return RunRecord(is_there=False)
    except (OSError, ValueError, StoreError) as error:
        return RunRecord(faults=(unread(error),))
    if not isinstance(record, dict):
        return RunRecord(faults=("not an object",))
    content, changed = without_checksum(record)
    wrong = [name for name, is_right in _ENTRIES.items() if name in content and not is_right(content[name])]
    sound = {name: value for name, value in content.items() if name not in wrong}
    told = (f"{name} is not what it must be, and is left out" for name in wrong)
    return RunRecord(sound, (*([changed] if changed else ()), *told))


def text_of(record: Mapping[str, object]) -> str:
    """The object as JSON, ASCII alone, with its checksum (CRC-32, 8 hex digits) as the last key."""
    content = {name: value for name, value in record.items() if name != CHECKSUM}
    return json.dumps(content | {CHECKSUM: _checksum(content)}, indent=1, ensure_ascii=True) + "\n"


def without_checksum(record: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The object without its checksum, and what is wrong with it; one of before there were any is right without."""
    content = {name: value for name, value in record.items() if name != CHECKSUM}
    if CHECKSUM not in record or record[CHECKSUM] == _checksum(content):
        return content, None
    return content, "changed since it was written: it is not what its checksum says"


def _checksum(content: Mapping[str, object]) -> str:
    return f"{zlib.crc32(json.dumps(content, ensure_ascii=True).encode('ascii')):08x}"


def _is_options(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    mappings = all(isinstance(value.get(name, {}) or {}, Mapping) for name in _OPTION_MAPPINGS)
    lists = all(isinstance(value.get(name) or [], list) for name in ("devices", "tags"))
    return mappings and lists and isinstance(value.get("seed") or 0, int)


_OPTION_MAPPINGS = ("models", "data", "identities", "audit", "chat_args")
_ENTRIES: Mapping[str, Callable[[Any], bool]] = {
    "options": _is_options,
    "schema_version": lambda value: not isinstance(value, bool) and value in range(1, SCHEMA_VERSION + 1),
    "versions": lambda value: isinstance(value, Mapping),
    "sessions": lambda value: isinstance(value, list),
    "exitstatus": lambda value: value is None or (isinstance(value, int) and abs(value) < 2**31),
}
"""Entries on whose types something hangs."""
