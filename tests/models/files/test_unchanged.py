"""A check of a file is made again where the file is another, and only there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lm_audit.errors import ModelError
from lm_audit.models.files.unchanged import once_unchanged


class Reader:
    """Counts how often a file was read; refuses what begins with "bad"."""

    def __init__(self) -> None:
        self.reads = 0
        self.check = once_unchanged(self._check)

    def _check(self, path: Path) -> None:
        self.reads += 1
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror}") from error
        if text.startswith("bad"):
            raise ModelError(f"{path} is bad")


def test_an_unchanged_file_is_read_once(tmp_path: Path) -> None:
    reader, path = Reader(), tmp_path / "a"
    path.write_text("good", encoding="utf-8")
    for _ in range(3):
        reader.check(path)
    assert reader.reads == 1


@pytest.mark.parametrize("keeps_time", [False, True])
def test_a_changed_file_is_read_again_whatever_its_times_say(tmp_path: Path, keeps_time: bool) -> None:
    reader, path = Reader(), tmp_path / "a"
    path.write_text("good", encoding="utf-8")
    before = path.stat()
    reader.check(path)
    draft = tmp_path / "draft"
    draft.write_text("bad!", encoding="utf-8")
    os.replace(draft, path)
    if keeps_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ModelError, match="is bad"):
        reader.check(path)


def test_a_refusal_is_not_remembered(tmp_path: Path) -> None:
    reader, path = Reader(), tmp_path / "a"
    path.write_text("bad", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(ModelError, match="is bad"):
            reader.check(path)
    assert reader.reads == 2


def test_an_absent_file_is_refused_in_the_words_of_the_check(tmp_path: Path) -> None:
    reader = Reader()
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        reader.check(tmp_path / "absent")
