"""How far the running case of a process is, and how a controller learns of it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from lm_audit.shared.textfiles import replacing

_WRITE_EVERY_S = 0.5


@dataclass
class CaseProgress:
    """How far the running case of one process is; ``tokens`` and ``since`` belong to the current call of the model.

    ``served``: the items are requests to a server.
    """

    case: str = ""
    began: float = 0.0
    done: int = 0
    total: int = 0
    tokens: int = 0
    since: float = 0.0
    served: bool = False

    def start(self, case: str) -> None:
        """A case begins."""
        self.case, self.began, self.done, self.total, self.tokens = case, time.time(), 0, 0, 0
        self.served = False

    def update(self, done: int, total: int, tokens: int = 0) -> None:
        """Items done of all and tokens so far; fewer items than before mean that a new call began."""
        if total != self.total or done < self.done:
            self.since = time.time()
        self.done, self.total, self.tokens = done, total, tokens

    def rate(self, now: float) -> float | None:
        """Tokens a second of the current call, None before there are any."""
        return self.tokens / (now - self.since) if self.tokens and now > self.since else None

    def speed(self, now: float) -> str:
        """Tokens a second, or of a server requests a second and the tokens of this call; empty before there are any."""
        if self.served and self.done and now > self.since:
            return f"{self.done / (now - self.since):,.1f} requests/s, {self.tokens:,} tokens"
        rate = self.rate(now)
        return f"{rate:,.0f} tokens/s" if rate else ""


class Reporter:
    """Keeps this process's progress, and leaves it in a file where a controller can see it."""

    def __init__(self, file: Path | None = None):
        self.now = CaseProgress()
        self._file = file
        self._written = 0.0

    def start(self, case: str) -> None:
        """A case begins."""
        self.now.start(case)
        self._leave(force=True)

    def update(self, done: int, total: int, tokens: int = 0) -> None:
        """Called by the model's engine and by audits while they work."""
        self.now.update(done, total, tokens)
        self._leave(force=False)

    def stop(self) -> None:
        """The case is over."""
        self.now.start("")
        self._leave(force=True)

    def _leave(self, *, force: bool) -> None:
        if self._file is None or (not force and time.monotonic() - self._written < _WRITE_EVERY_S):
            return
        self._written = time.monotonic()
        try:
            with replacing(self._file) as draft:
                draft.write_text(json.dumps(asdict(self.now)), encoding="utf-8")
        except OSError:
            self._file = None  # A disk that is full is the ledger's to tell.
