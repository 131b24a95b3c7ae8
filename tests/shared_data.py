"""Where the reference values and public data lie that tests read but users do not have."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
GOLDEN = Path(__file__).resolve().parent / "golden"
ABSENT = "reference values and public data are not part of the repository"


def shared(relative: str) -> Path:
    """The path of a file under ``../shared``; skips the calling test where it is absent."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"../shared/{relative} is absent: {ABSENT}")
    return path


def golden_file(relative: str) -> Path:
    """The path of a file of golden values: one of ``tests/golden``, else of ``../shared/golden``, else a skip."""
    own = GOLDEN / relative
    return own if own.exists() else shared(f"golden/{relative}")
