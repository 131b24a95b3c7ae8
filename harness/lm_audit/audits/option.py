"""AuditOption: a command-line option that one audit adds to pytest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class AuditOption:
    """One option, in the terms of ``argparse``; the plugin registers it without knowing its meaning.

    ``flag`` begins with ``--``; the value is read by the flag's name without dashes, ``-`` as ``_``. ``metavar`` is
    what the help shows in the value's place.

    ``names`` says what on the disk a value may name, as ``PATH`` or ``NAME=PATH``: ``"data"`` go along to workers that
    do not share the disk (``--ray``), ``"models"`` (also several, ``NAME=SPEC,NAME=SPEC``) are looked for there.
    """

    flag: str
    help: str
    action: Literal["store", "append", "store_true"] = "store"
    default: Any = None
    choices: tuple[str, ...] | None = None
    type: Callable[[str], Any] = str
    metavar: str = "VALUE"
    names: Literal["data", "models"] | None = None

    @property
    def name(self) -> str:
        """The key by which the value is read."""
        return self.flag.removeprefix("--").replace("-", "_")
