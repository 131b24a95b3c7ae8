"""A file that cannot be written says which and why, and nothing takes its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lm_audit.errors import StoreError
from lm_audit.runstore import metadata
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import LineFile
from lm_audit.runstore.run_record import read_record


def test_a_file_that_cannot_be_opened_or_is_closed_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"cannot open {tmp_path}: "):
        LineFile(tmp_path)
    file = LineFile(tmp_path / "lines")
    file.close()
    with pytest.raises(StoreError, match="lines: it is closed"):
        file.append({})


def test_a_close_that_the_disk_refuses_is_a_store_error(tmp_path: Path) -> None:
    """Over a network a quota may be told now; here somebody else has closed the file."""
    file = LineFile(tmp_path / "lines")
    assert file._handle is not None
    os.close(file._handle)
    with pytest.raises(StoreError, match=r"cannot write to .*lines: Bad file descriptor"):
        file.close()
    file.close()


DAMAGES = {
    "emptied": b"",
    "cut": b"{",
    "removed": None,
    "of another type": b'{"sessions": [], "options": 3}',
    "of a later version": b'{"sessions": [], "schema_version": 99}',
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_run_json_that_cannot_be_read_at_the_end_is_not_replaced_by_less(
    tmp_path: Path, damage: bytes | None
) -> None:
    folder = RunFolder(tmp_path / "20260101-000000-0000")
    folder.create()
    begun = metadata.start(folder, command=["pytest"], root=tmp_path, options={"seed": 7})
    folder.run_json.unlink() if damage is None else folder.run_json.write_bytes(damage)
    with pytest.raises(StoreError, match=r"cannot complete .*run\.json: it is absent or damaged"):
        metadata.finish(folder, 0)
    assert (folder.run_json.read_bytes() if folder.run_json.exists() else None) == damage
    metadata.finish(folder, 0, begun)
    found = read_record(folder).whole
    assert found is not None and found["options"] == {"seed": 7} and found["finished"] and len(found["sessions"]) == 1
