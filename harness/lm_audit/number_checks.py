"""Former place of :mod:`lm_audit.shared.number_checks`, which the guide to adding an audit named; goes with 1.0."""

from __future__ import annotations

import warnings

from lm_audit.shared import number_checks


def __getattr__(name: str) -> object:
    found = getattr(number_checks, name)
    warnings.warn(f"{__name__}.{name} is now {number_checks.__name__}.{name}", DeprecationWarning, stacklevel=2)
    return found
