"""Answers on disk: each is written the moment it arrives, and found again by what was asked."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.shared.sealed import sealed, unsealed
from lm_audit.shared.textfiles import is_file

_PLACE_BITS = 44


class KeptAnswers:
    """The answers of a run: a file a process, one JSON line an answer.

    What other processes and earlier sessions left is indexed when the object is made, by place and not by content, so
    that memory stays small. A line that was cut short by a kill, or changed since, is no answer.
    """

    def __init__(self, folder: Path | None, writer: str = "main", reuse: Iterable[Path] = ()):
        self._folder = folder
        self._name = f"{writer}-{os.getpid()}.jsonl"
        self._files: list[Path] = []
        self._places: dict[int, int] = {}  # half a key -> number of the file and place in it, in one integer
        self._descriptor: int | None = None
        self._own = 0
        self.found = 0
        for place in [*reuse, *([folder] if folder else [])]:
            for file in sorted(place.glob("*.jsonl")):
                self._index(file)

    @staticmethod
    def key(question: Mapping[str, object]) -> str:
        """A hash of what was asked (32 hex digits)."""
        text = json.dumps(question, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer to a question, ``None`` where it was never given."""
        place = self._places.get(int(key[:16], 16))
        if place is None:
            return None
        try:
            with self._files[place >> _PLACE_BITS].open("rb") as file:
                file.seek(place & ((1 << _PLACE_BITS) - 1))
                record = json.loads(unsealed(file.readline()))
        except (OSError, ValueError, RecursionError):
            return None
        if record.get("key") != key or not isinstance(record.get("answer"), dict):
            return None
        self.found += 1
        answer: dict[str, Any] = record["answer"]
        return answer

    def put(self, key: str, answer: Mapping[str, object]) -> None:
        """Write an answer down; ``StoreError`` where the disk refuses."""
        if self._folder is None:
            return
        line = sealed(json.dumps({"key": key, "answer": answer}, ensure_ascii=True).encode()) + b"\n"
        path = self._folder / self._name
        try:
            if self._descriptor is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
                self._own = len(self._files)
                self._files.append(path)
            place = os.lseek(self._descriptor, 0, os.SEEK_END)
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            raise StoreError(f"cannot write answers under {self._folder}: {error.strerror or error}") from error
        self._places[int(key[:16], 16)] = self._own << _PLACE_BITS | place

    def close(self) -> None:
        """Give the file back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _index(self, file: Path) -> None:
        place, number = 0, len(self._files)
        self._files.append(file)
        if file.exists() and not is_file(file):  # a pipe would wait for its writer
            raise StoreError(f"cannot read answers in {file}: it is no regular file")
        try:
            with file.open("rb") as lines:
                for line in lines:
                    # The key stands first; the rest of a line may be large and is read when it is asked for.
                    if line.startswith(b'{"key": "') and line.endswith(b"}\n"):
                        self._places[int(line[9:25], 16)] = number << _PLACE_BITS | place
                    place += len(line)
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot read answers in {file}: {error}") from error
