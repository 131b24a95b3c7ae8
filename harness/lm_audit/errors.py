"""The exception tree of the harness.

HarnessError
├── UsageError   an option, argument or file name that cannot be used
├── ModelError   a model that cannot be loaded, or that answers with NaN
│   └── ServerError  a server that is not there, or does not answer as one should
├── DataError    an input file or row that breaks its format
│   └── ContextError  a text that is longer than its model reads
├── BudgetError  tokens ran out that a run may spend
├── GateError    a gates file that cannot be read or names what does not exist
└── StoreError   a run store that cannot be written or read

Every message says what was wrong, the value that was found, and what would be right.
"""

from __future__ import annotations

import re
from pathlib import Path

from lm_audit.shared.visible import visible

_ENDLESS = re.compile(r"\S{1000,}")
_LONGEST = 5_000


def _shortened(word: re.Match[str]) -> str:
    return f"{word[0][:200]}...{word[0][-50:]}"


class HarnessError(Exception):
    """Base of every error that the harness raises on purpose; its message has no hidden character, no endless word."""

    def __str__(self) -> str:
        """The message as it may be printed: it often quotes what a file, a model or an option says."""
        message = _ENDLESS.sub(_shortened, super().__str__())
        if len(message) > _LONGEST:  # A table of ten thousand columns, each by its name.
            message = f"{message[: _LONGEST - 500]} ... {message[-500:]}"
        return visible(message)


class UsageError(HarnessError):
    """An option, an argument or a file name that cannot be used."""


class ModelError(HarnessError):
    """A model that cannot be loaded, or that gave an unusable answer."""


class ServerError(ModelError):
    """A server that cannot be reached, or that does not answer as it should; asking again later may help."""


class BudgetError(HarnessError):
    """The tokens are spent that a run may cost at a server; what was answered is kept."""


class DataError(HarnessError):
    """An input that breaks its format; carries where it was found.

    ``file`` is the file as the user named it, ``row`` its 1-based line or record number, ``field`` the column or
    option.
    """

    def __init__(
        self, message: str, *, file: str | Path | None = None, row: int | None = None, field: str | None = None
    ):
        self.file = None if file is None else str(file)
        self.row = row
        self.field = field
        shown = self.file if self.file is None or len(self.file) <= 300 else f"{self.file[:100]}...{self.file[-100:]}"
        where = [part for part in (shown, f"row {row}" if row is not None else None, field) if part]
        super().__init__(f"{', '.join(where)}: {message}" if where else message)


class ContextError(DataError):
    """A text that is longer than its model reads; :func:`beyond_context` has the words, wherever it is met."""


def beyond_context(what: str, tokens: int, model: str, limit: int, advice: str) -> str:
    """Why ``what`` is not given to ``model``: it needs so many ``tokens``, and ``limit`` is its context window.

    One wording for errors (:class:`ContextError`), cases that are skipped and items that are left out. ``advice`` says
    what to do.
    """
    return f"{what} needs {tokens} tokens, and {model} reads at most {limit} (its context window): {advice}"


TOO_LONG = "longer than the model reads"
"""The same as a reason by which rows that were left out are counted."""


class GateError(HarnessError):
    """A gates file that cannot be read, or that names a metric or key which does not exist."""


class StoreError(HarnessError):
    """A run store that cannot be written or read."""


class DataWarning(UserWarning):
    """Input that was read by a guess, or of which much could not be used; said once, at collection."""

    def __str__(self) -> str:
        """The message as it may be printed."""
        return visible(super().__str__())
