"""AuditOption: a command-line option that one audit adds to pytest."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class AuditOption:
    """One option, in the terms of ``argparse``; the plugin registers it without knowing its meaning.

    ``flag`` begins with ``--``; the value is read by the flag's name without dashes, ``-`` as ``_``. ``metavar`` is
    what the help shows in the value's place.
    """

    flag: str
    help: str
    action: Literal["store", "append", "store_true"] = "store"
    default: Any = None
    choices: tuple[str, ...] | None = None
    type: Callable[[str], Any] = str
    metavar: str = "VALUE"

    @property
    def name(self) -> str:
        """The key by which the value is read."""
        return self.flag.removeprefix("--").replace("-", "_")


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """A type for :class:`AuditOption`: whole numbers from ``least`` to ``most``, anything else refused by name."""
    wanted = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise ArgumentTypeError(f"{text[:40]!r} is not {wanted}")
        return number

    return parse


def filled(text: str) -> str:
    """A type for :class:`AuditOption`: text that is not empty, since an empty value would count as none given."""
    if not text.strip():
        raise ArgumentTypeError("the value is empty; leave the option out, or give it one")
    return text
