"""The gates files in the docs are gates files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lm_audit.gates import read_gates

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCKS = re.findall(r"```toml\n(.*?)```", (DOCS / "gates.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS, ids=[re.sub(r"\W+", "-", block.splitlines()[0])[:40] for block in BLOCKS])
def test_a_documented_gates_file_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    path.write_text(text, encoding="utf-8")
    (gate,) = read_gates(path)
    assert gate.limit and gate.metric.count(".") >= 1


def test_there_is_an_example_for_each_audit() -> None:
    text = "".join(BLOCKS)
    assert all(audit in text for audit in ("bias", "privacy", "leakage", "needle", "faithfulness"))
