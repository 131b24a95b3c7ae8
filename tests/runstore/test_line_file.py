"""A file of lines that cannot be written says which and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.errors import StoreError
from lm_audit.runstore.ledger import LineFile


def test_a_file_that_cannot_be_opened_or_is_closed_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"cannot open {tmp_path}: "):
        LineFile(tmp_path)
    file = LineFile(tmp_path / "lines")
    file.close()
    with pytest.raises(StoreError, match="lines: it is closed"):
        file.append({})
