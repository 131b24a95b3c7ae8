"""Where the files of a run lie, and what a run is called."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from lm_audit.errors import StoreError

_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")


def new_run_id() -> str:
    """``YYYYMMDD-HHMMSS-xxxx``: local time and four random hexadecimal digits."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def is_run_id(name: str) -> bool:
    """Whether ``name`` has the form of a run id."""
    return _RUN_ID.fullmatch(name) is not None


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run. Nothing is created until :meth:`create`."""

    path: Path

    @property
    def run_id(self) -> str:
        """The run's id, the name of its folder."""
        return self.path.name

    @property
    def ledger(self) -> Path:
        """Folder of the ledgers, one file a process."""
        return self.path / "ledger"

    @property
    def rows(self) -> Path:
        """Folder of item rows, one JSON-lines file an attempt."""
        return self.path / "rows"

    @property
    def answers(self) -> Path:
        """What models answered in cases that have not ended yet, for ``--resume``; gone when the run has ended."""
        return self.path / "measuring"

    @property
    def artifacts(self) -> Path:
        """Folder of attached files, a folder an attempt."""
        return self.path / "artifacts"

    @property
    def run_json(self) -> Path:
        """What the run was started with."""
        return self.path / "run.json"

    def create(self) -> None:
        """Make the folders; ``StoreError`` that names the folder where that fails."""
        try:
            for folder in (self.ledger, self.rows, self.artifacts):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(unusable(self.path.parent, error)) from error

    def remove_if_empty(self) -> None:
        """Take away the folders of a run that could not begin: nobody can resume, report or compare it."""
        for folder in (self.artifacts, self.rows, self.ledger, self.path):
            with contextlib.suppress(OSError):  # something is in it, and stays
                folder.rmdir()


def unusable(reports: Path, error: OSError) -> str:
    """The sentence that says why a reports folder cannot be used, and what to do."""
    return f"cannot write reports under {reports}: {error.strerror or error}; name a writable folder with --reports DIR"


def check_writable(reports: Path) -> None:
    """Raise ``StoreError`` unless a file can be written in ``reports``, or in its nearest existing parent."""
    try:
        os.stat(reports)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # Too long, or a link in a circle.
        raise StoreError(unusable(reports, error)) from error
    except ValueError as error:  # NUL, or half of a surrogate pair
        raise StoreError(f"no folder can be called {str(reports)!r}: {error}") from error
    folder = reports
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    probe = folder / f".lm-audit-{os.getpid()}"
    try:
        probe.write_bytes(b"lm-audit")
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):  # On a read-only file system there is nothing to remove, and no way to.
            probe.unlink(missing_ok=True)
        raise StoreError(unusable(reports, error)) from error


def attempt_key(case_id: str, attempt: int, writer: str) -> str:
    """A file-system name for one attempt of a case: readable start, unique end."""
    readable = re.sub(r"[^A-Za-z0-9.=+-]+", "_", case_id.rpartition("::")[2])[:60].strip("_.")
    digest = hashlib.sha256(case_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{readable}-{digest}-{attempt}-{writer}"
