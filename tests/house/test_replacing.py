"""A file takes another's place whole, by one piece of code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lm_audit.shared.textfiles import replacing
from tests.test_layers import MODULES

ELSEWHERE = {
    "lm_audit.plugin.cluster.node.mirror",
    "lm_audit.models.endpoint.client.budget",
    "lm_audit.runstore.merging.merge",
}
"""Two have the only writer of their file and a draft of a fixed name; a merge renames a whole folder."""


@pytest.mark.parametrize("synced", [True, False])
def test_the_old_content_stays_until_the_new_one_is_whole(tmp_path: Path, synced: bool) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    with replacing(path, synced=synced) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    with pytest.raises(OSError, match="disk is full"), replacing(path) as draft:
        draft.write_text("ne")
        raise OSError("the disk is full")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "elsewhere", tmp_path / "page.html"
    target.write_text("not ours")
    link.symlink_to(target)
    with replacing(link) as draft:
        draft.write_text("ours")
    assert target.read_text() == "not ours" and not link.is_symlink()


def test_a_device_is_left_where_it_is() -> None:
    with pytest.raises(OSError, match="is a device"), replacing(Path("/dev/null")):
        raise AssertionError("no draft is made")
    assert Path("/dev/null").is_char_device()


def test_two_writers_do_not_share_a_draft(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as first, replacing(tmp_path / "a") as second:
        assert first != second
        first.write_text("one")
        second.write_text("two")
    assert (tmp_path / "a").read_text() == "one"


def _renames(module: str) -> list[str]:
    """Calls that rename a path onto another; ``str.replace`` takes two arguments, ``Path.replace`` one."""
    calls = [node for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if (isinstance(call.func, ast.Attribute) and call.func.attr == "replace" and len(call.args) == 1)
        or (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("replace", "rename", "move")
            and ast.unparse(call.func) in ("os.replace", "os.rename", "shutil.move")
        )
    ]


def test_nothing_else_renames_a_file_into_place() -> None:
    found = {module: _renames(module) for module in MODULES if module not in ELSEWHERE}
    assert {module for module, calls in found.items() if calls} == {"lm_audit.shared.textfiles.replacing"}
