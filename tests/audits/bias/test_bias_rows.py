"""Reading the public bias benchmarks: their published formats, and what is dirty in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lm_audit.audits.bias.benchmarks.rows import is_hub_id, load_rows
from lm_audit.errors import DataError, UsageError
from tests.shared_data import shared

CROWS_HEAD = ",sent_more,sent_less,stereo_antistereo,bias_type,annotations,anon_writer,anon_annotators\n"


@pytest.mark.parametrize(
    ("relative", "kind", "count"),
    [
        ("crows_pairs_anonymized.csv", "crows_pairs", 1508),
        ("stereoset_editbias", "stereoset", 799 + 253 + 79),
        ("winobias", "winobias", 8 * 396),
        ("winogender/all_sentences.tsv", "winogender", 720),
        ("bbq", "bbq", 864 + 1200 + 1556 + 1576),
        ("cbbq", "cbbq", 2 * 586),
    ],
)
def test_published_files_read_whole(relative: str, kind: str, count: int) -> None:
    rows = load_rows(shared(f"data/bias/{relative}"), kind)
    assert len(rows) == count
    assert all(row["_file"] and row["_row"] >= 1 for row in rows)
    assert not any(key.startswith("\ufeff") for row in rows for key in row)


def test_byte_order_mark_and_crlf_change_nothing(tmp_path: Path) -> None:
    text = CROWS_HEAD + '0,"More, said",Less,stereo,gender,[],a1,[]\n'
    plain, windows = tmp_path / "plain.csv", tmp_path / "windows.csv"
    plain.write_bytes(text.encode())
    windows.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())

    def without_file(path: Path) -> list[dict[str, object]]:
        return [{key: value for key, value in row.items() if key != "_file"} for row in load_rows(path, "crows_pairs")]

    assert without_file(plain) == without_file(windows)
    assert without_file(plain)[0]["sent_more"] == "More, said"


@pytest.mark.parametrize(
    ("name", "kind", "text", "row"),
    [
        ("short.csv", "crows_pairs", CROWS_HEAD + "0,a,b,stereo,gender,[],a1,[]\n1,only one sentence\n", 3),
        ("long.csv", "crows_pairs", CROWS_HEAD + "0,a,b,stereo,gender,[],a1,[],more,and more\n", 2),
        ("quote.csv", "crows_pairs", CROWS_HEAD + '0,"a"x,b,stereo,gender,[],a1,[]\n', 2),
        ("broken.jsonl", "bbq", '{"context": "x"\n', 1),
        ("list.jsonl", "bbq", "[1, 2]\n", 1),
        ("pro_stereotyped_type1.txt.dev", "winobias", "1 [The cook] left.\nno number here\n", 2),
    ],
)
def test_a_broken_row_is_named_by_number(tmp_path: Path, name: str, kind: str, text: str, row: int) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_rows(path, kind)
    assert caught.value.row == row
    assert f"row {row}" in str(caught.value) and name in str(caught.value)


def test_stereoset_own_release_is_flattened_with_its_task(tmp_path: Path) -> None:
    item = {"target": "t", "bias_type": "gender", "context": "c BLANK", "sentences": []}
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"version": "1.1", "data": {"intrasentence": [item], "intersentence": [item, item]}}))
    assert [row["task"] for row in load_rows(path, "stereoset")] == ["intrasentence", "intersentence", "intersentence"]


@pytest.mark.parametrize(
    ("source", "hub"),
    [("owner/name", True), ("pairs.csv", False), ("data/pairs.csv", False), ("./data/pairs", False), ("/a/b", False)],
)
def test_only_what_can_be_a_hub_id_is_left_for_later(source: str, hub: bool) -> None:
    assert is_hub_id(source) is hub


def test_unusable_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown kind"):
        load_rows("x.csv", "seat")
    with pytest.raises(DataError, match="no such file"):
        load_rows(tmp_path / "absent.csv", "crows_pairs")
    with pytest.raises(DataError, match="has no file"):
        load_rows(tmp_path, "bbq")
    (tmp_path / "latin.csv").write_bytes(CROWS_HEAD.encode() + "0,caf\xe9,b,stereo,gender,[],a,[]\n".encode("latin-1"))
    with pytest.raises(DataError, match="neither UTF-8 nor"):
        load_rows(tmp_path / "latin.csv", "crows_pairs")
    (tmp_path / "text.txt").write_text("1 [The cook] left.\n")
    with pytest.raises(DataError, match="must begin with pro_"):
        load_rows(tmp_path / "text.txt", "winobias")
