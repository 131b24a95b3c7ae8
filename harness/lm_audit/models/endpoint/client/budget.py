"""Tokens spent, by this process and by the others of its run, against a limit."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from uuid import uuid4

from lm_audit.errors import BudgetError
from lm_audit.shared.textfiles import is_file


class Budget:
    """Counts tokens; with ``folder`` every server of every process of a run has a count there; the limit is for all."""

    def __init__(self, limit: int | None = None, folder: Path | None = None, writer: str = "main"):
        self.limit = limit
        self.spent = 0
        self._folder = folder if limit is not None else None
        # A process may ask several servers, and another session may get its number again: each count has its own file.
        self._file = None if folder is None else folder / f"{writer}-{os.getpid()}-{uuid4().hex[:12]}.spent"

    @property
    def total(self) -> int:
        """Tokens spent by all processes of the run, in earlier sessions too."""
        if self._folder is None or self._file is None:
            return self.spent
        total = self.spent
        for file in self._folder.glob("*.spent"):
            if file != self._file and is_file(file):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
                    total += int(json.loads(file.read_text(encoding="utf-8"))["tokens"])
        return total

    def add(self, tokens: int) -> None:
        """Count tokens that an answer cost."""
        self.spent += tokens
        if self._folder is None or self._file is None or not tokens:
            return
        with contextlib.suppress(OSError):  # The count is told with the answers; a limit is no reason to lose one.
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary = self._file.with_suffix(".tmp")
            temporary.write_text(json.dumps({"tokens": self.spent}), encoding="utf-8")
            temporary.replace(self._file)

    def check(self) -> None:
        """``BudgetError`` where nothing is left."""
        if self.limit is not None and self.total >= self.limit:
            raise BudgetError(
                f"budget: {self.total} tokens are spent, --max-tokens-spent is {self.limit}; every answer so far is "
                "kept, and --resume with a larger budget asks for the rest"
            )
