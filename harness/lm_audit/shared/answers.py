"""What models answered, on disk as soon as they answer: a killed process measures nothing again that it had measured.

Every call of a :class:`~lm_audit.models.language_model.LanguageModel` asks here first, and writes here what it
computed, answer by answer. That is one place for all audits: a case that scores a hundred thousand prompts or writes
for an hour goes on where it stopped, whatever it makes of the answers.

An answer is found again by the scope that asked (a case with its fingerprint, or a measurement that several cases
share), by how many calls that scope had made before, and by the request with its settings. The count is there because
a scope may ask the same of several models, of which some are made on the spot (controls plant what they look for).
Imports no torch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lm_audit.shared.sealed import sealed, unsealed
from lm_audit.shared.textfiles import is_file
from lm_audit.shared.textfiles.appending import open_to_append


class Scope:
    """The answers of one scope: those that an earlier process left in ``file``, and those that are added to it."""

    def __init__(self, file: Path):
        self.folder, self._file = file.parent, file
        self._known = dict(_read(file))
        self._calls = 0
        self._out: int | None = None

    def call(self, *settings: object) -> Call:
        """The next call of the scope; ``settings`` are all that its answers hang on beside the single request."""
        self._calls += 1
        return Call(self, repr((self._calls, settings)))

    def known(self, key: str) -> Any:
        """The answer, None where there is none."""
        return self._known.get(key)

    def add(self, answers: Iterable[tuple[str, Any]]) -> None:
        """Write answers at once. They only save time: where the disk refuses them, the case goes on without."""
        records = (json.dumps({"key": key, "answer": answer}).encode("ascii") for key, answer in answers)
        lines = b"".join(sealed(record) + b"\n" for record in records)
        try:
            if self._out is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._out = open_to_append(self._file)
                lines = b"\n" + lines  # a killed process may have left half a line
            os.write(self._out, lines)
        except OSError:
            return

    def close(self) -> None:
        """Nothing more comes."""
        if self._out is not None:
            os.close(self._out)
            self._out = None


class Call:
    """One call of a model in a scope."""

    def __init__(self, scope: Scope, settings: str):
        self._scope, self._settings = scope, settings.encode("utf-8", "surrogatepass")

    def known(self, *request: bytes) -> Any:
        """What was answered to the request, as plain JSON; None where it was not asked."""
        return self._scope.known(self._key(request))

    def add(self, answers: Iterable[tuple[tuple[bytes, ...], Any]]) -> None:
        """Keep (request, answer) pairs; an answer is plain JSON."""
        self._scope.add((self._key(request), answer) for request, answer in answers)

    def _key(self, request: Iterable[bytes]) -> str:
        digest = hashlib.blake2b(self._settings, digest_size=16)
        for part in request:
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()


_SCOPES: list[Scope] = []


@contextmanager
def answers_in(file: Path) -> Iterator[None]:
    """Keep what models answer meanwhile in ``file``, and answer from it what it holds already."""
    scope = Scope(file)
    _SCOPES.append(scope)
    try:
        yield
    finally:
        _SCOPES.remove(scope)
        scope.close()


@contextmanager
def shared_answers(what: str) -> Iterator[None]:
    """The same for a measurement that several cases share, beside the file of the case that asks for it first."""
    if not _SCOPES:
        yield
        return
    name = hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    with answers_in(_SCOPES[-1].folder / f"{SHARED}{name}.jsonl"):
        yield


def next_call(*settings: object) -> Call | None:
    """The call that is about to be made, None where nobody keeps answers."""
    return _SCOPES[-1].call(*settings) if _SCOPES else None


SHARED = "shared-"


def _read(file: Path) -> Iterator[tuple[str, Any]]:
    """The answers of a file; a line that was cut off by a kill, changed since, or is of another version, is none."""
    try:
        lines = file.read_bytes().splitlines() if is_file(file) else []  # a pipe would wait for its writer
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            record = json.loads(unsealed(line, required=True))
            yield str(record["key"]), record["answer"]
