"""What every reader of files does alike: encodings, line ends, strict JSON, tables, files that are none."""

from __future__ import annotations

import csv
import json
import os
import warnings
from pathlib import Path

import pytest

from lm_audit.errors import DataError, DataWarning
from lm_audit.models.loading.identity.spec_identity import content_state, file_state
from lm_audit.shared.textfiles import (
    files_in,
    is_file,
    json_lines,
    parse_json,
    read_toml,
    table_records,
    table_rows,
    text_of,
)
from lm_audit.shared.textfiles.encodings import encoding_of
from lm_audit.shared.textfiles.remembering import content_stamp

CHINESE = "下列属于水果的是：苹果、石头（木头）。“好”——《论语》\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk", "gb18030"])
def test_chinese_text_is_read_in_its_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(CHINESE.encode(encoding))
    if encoding.startswith("gb"):
        with pytest.warns(DataWarning, match=r"text\.txt.*read as GB18030"):
            assert text_of(path) == CHINESE
    else:
        assert text_of(path) == CHINESE


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_both_orders_of_utf_16(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(("\ufeff" + CHINESE).encode(mark))
    assert text_of(path) == CHINESE
    path.write_bytes(CHINESE.encode(mark))
    with pytest.raises(DataError, match=r"text\.txt"):
        text_of(path)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "Málaga, créée, façade, naïve, über\n"),
        ("cp1252", "“Hello”, it’s a café\n"),
        ("shift_jis", "これは二番目の文です。三番目の文もあります。\n"),
        ("euc_jp", "これは二番目の文です。三番目の文もあります。\n"),
        ("big5", "下列屬於水果的是蘋果石頭木頭鐵塊\n"),
        ("koi8-r", "Привет, как дела\n"),
        ("cp1251", "Привет, как дела\n"),
        ("utf-32", "plain\n"),
        ("euc_kr", "대한민국의 수도는 서울이다. 다음 중 옳은 것은 무엇인가?\n"),
        ("cp949", "나는 오늘 학교에 가서 친구를 만났다. 그 사람은 책을 읽고 있었다.\n"),
        ("euc_kr", "남자,여자\n" * 200),
        ("euc_jp", "東京都,大阪府,京都府,名古屋市,神戸市,日本大学,経済政策,人口問題\n"),
        ("shift_jis", "ﾄｳｷｮｳﾄﾆﾎﾝ\n" * 20),
        ("cp1251", "Привет хорошо\nспасибо друг\n".replace("спасибо ", "")),
        ("koi8-r", "Привет хорошо\n" * 30),
        ("cp1253", "πρωτεύουσα\n" * 10),
        ("cp1256", "السلام\n" * 10),
        ("cp874", "เมืองหลวง\n"),
        ("gb18030", "苹果\n"),  # too short to be told from Korean
    ],
)
def test_other_encodings_are_refused(tmp_path: Path, encoding: str, text: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=r"text\.txt.*save the file as UTF-8"):
        text_of(path)


@pytest.mark.parametrize(
    ("encoding", "text", "names"),
    [
        ("euc_kr", "다음 중 옳은 것은 무엇인가", "EUC-KR"),
        ("euc_jp", "東京都大阪府京都府", "EUC-JP"),
        ("cp1251", "Привет хорошо", "Windows-1251"),
    ],
)
def test_what_an_unclear_file_may_be_is_named(tmp_path: Path, encoding: str, text: str, names: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=rf"row 1: .*GB18030; its bytes would also be .*{names}"):
        text_of(path)


def test_a_guess_is_told_with_the_other_it_could_be(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("我们在学校里看到了很多人，他们说的话都很有意思".encode("gbk"))
    with pytest.warns(DataWarning, match=r"read as GB18030 \(Chinese\).*would also be EUC-KR"):
        text_of(path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"\x1f\x8b\x08\0", "gzip"), (b"PK\x03\x04ab", "zip"), (b"%PDF-1.7\n", "PDF"), (b"PAR1ab", "Parquet")],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=rf"x\.jsonl: is .*{kind}"):
        text_of(tmp_path / "x.jsonl")


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        (tmp_path / "absent", "no such file"),
        (tmp_path, "is a folder"),
        (tmp_path / "pipe", "pipe or a device"),
        (Path("/dev/zero"), "pipe or a device"),
        *([(Path("/proc/version"), "made by the kernel")] if Path("/proc/version").exists() else []),
        (tmp_path / ("n" * 5000), "cannot be read: File name too long"),
        (tmp_path / "a\0b", "no name of a file"),
        (tmp_path / "pipe" / "x", "no such file"),
    ):
        with pytest.raises(DataError, match=says) as caught:
            text_of(path)
        assert len(str(caught.value)) < 500


def test_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "below" / "x.csv").mkdir(parents=True)
    for name in ("b.csv", "a.csv", "a.txt", "below/c.csv", ".d.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "below" / "up").symlink_to("..")
    names = [path.name for path in files_in(tmp_path, "*.csv")]
    assert names == [".d.csv", "a.csv", "b.csv", "loop.csv"]
    assert [path.name for path in files_in(tmp_path, "*.csv", below=True)] == [*names[:3], "c.csv", names[3]]
    assert [path.name for path in files_in(tmp_path, "*.txt", "b.*")] == ["a.txt", "b.csv"]


@pytest.mark.parametrize("name", ["absent", "file", "loop", "nul\0", "half\ud800", "n" * 300])
def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DataError, match="cannot be read"):
        files_in(tmp_path / name, "*", below=True)


def test_a_folder_that_is_no_set_of_data_is_not_searched_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lm_audit.shared.textfiles.paths.MOST_ENTRIES", 30)
    for number in range(29):
        (tmp_path / "below" / f"{number}").mkdir(parents=True)
    assert files_in(tmp_path, "*", below=True) == []
    (tmp_path / "below" / "0" / "x.txt").write_text("")
    with pytest.raises(DataError, match="more than 30 files and folders"):
        files_in(tmp_path, "*.txt", below=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_is_closed_to_us(tmp_path: Path) -> None:
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    with pytest.raises(DataError, match="closed: cannot be read: Permission denied"):
        text_of(tmp_path / "closed")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_of_json_end_in_line_feeds_alone(tmp_path: Path, ends: str) -> None:
    texts = ["a\u2028b", "c\u2029d", "e\u0085f", "g\u000bh\u000ci\u001cj", "k"]
    path = tmp_path / "x.jsonl"
    path.write_bytes(ends.join(json.dumps({"text": text}, ensure_ascii=False) for text in texts).encode())
    assert [(number, record["text"]) for number, record in json_lines(path)] == list(enumerate(texts, start=1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "too many digits"),
        ('{"a": NaN}', "holds NaN"),
        ('{"a": -Infinity}', "holds -Infinity"),
        ('{"a": 1e999}', "too large"),
        ('{"a": [-' + "9" * 400 + "]}", "too large"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' twice"),
        ('{"a": "\\ud83d"}', "surrogate"),
        ('{"\\ud83d": 1}', "surrogate"),
        ("{'a': 1}", "is not JSON"),
        ('{"a": "\x01"}', "is not JSON"),
        ("", "is not JSON"),
    ],
    ids=range(13),
)
def test_json_is_strict(text: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        parse_json(text, Path("x.jsonl"), 7)
    assert str(caught.value).startswith("x.jsonl, row 7: ") and len(str(caught.value)) < 300


def test_json_that_is_right() -> None:
    text = '{"a": "\\ud83d\\ude00 \\u2028", "b": [1e308, 1, null, {"a": {}}]}'
    assert parse_json(text, Path("x"), None) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = " + "[" * 5_000, "nested too deeply"),
        ("a = " + "9" * 5_000, "too many digits"),
        ("[a]\nb = [{c = -" + "9" * 400 + "}]", "more than 64 bits"),
        ("a = 9223372036854775808", "more than 64 bits"),
        ("a = 1\na = 2\n", "line 2"),
        ("a = ", "is not TOML"),
        ("[a", "is not TOML"),
    ],
)
def test_toml(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(DataError, match=rf"x\.toml: .*{says}"):
        read_toml(tmp_path / "x.toml")


def test_a_huge_file_is_no_toml_and_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("a = 1\n")
    os.truncate(tmp_path / "x.toml", 1 << 40)
    with pytest.raises(DataError, match=r"x\.toml: has 1,099,511,627,776 bytes"):
        read_toml(tmp_path / "x.toml")


def test_toml_that_is_nested_without_end(tmp_path: Path) -> None:
    """Dotted names nest without recursion in the parser, and would break whoever walks through the tables."""
    for text in (".".join("a" * 3000) + " = 1", f"[{'.'.join('a' * 3000)}]\n", "a = " + "[" * 150 + "]" * 150):
        (tmp_path / "x.toml").write_text(text)
        with pytest.raises(DataError, match="nested too deeply"):
            read_toml(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_text(".".join("a" * 50) + " = [[[1]]]")
    assert read_toml(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b,a\n1,2,3\n", "two columns called 'a'"),
        ("a,b\n1,2,3\n", "row 2: has more fields than the 2 columns"),
        ('a,b\n1,"2\n', "cannot be read as a table"),
        ('a,b\n1,"2"x\n', "cannot be read as a table"),
    ],
)
def test_tables_that_cannot_be(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DataError, match=says):
        list(table_rows(tmp_path / "x.csv", ","))


def test_tables(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes('a,b\r\n"1\n\u2028",2\r\n\r\n3\r\n'.encode())
    assert list(table_rows(tmp_path / "x.csv", ",")) == [(3, {"a": "1\n\u2028", "b": "2"}), (5, {"a": "3", "b": None})]
    (tmp_path / "empty.csv").write_bytes(b"")
    assert list(table_rows(tmp_path / "empty.csv", ",")) == []


EVEN = [["question", "A", "B"], ["Which, now?", "1,5", "a; b"], ["Why|how?", "2", "3"]]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("expected", [",", "\t"])
def test_a_table_that_another_delimiter_divides_is_read_and_told(tmp_path: Path, delimiter: str, expected: str) -> None:
    path = tmp_path / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows(EVEN)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert [record for _, record in table_records(path, expected)] == EVEN
    assert [w.category for w in told] == ([] if delimiter == expected else [DataWarning])


@pytest.mark.parametrize("text", ["a,b;c,d\ne;f,g,h\n", "one\ntwo; three\n", "a,b\nc;d\n"])
def test_a_table_that_no_other_delimiter_divides_is_read_as_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    expected = [line.split(",") for line in text.splitlines()]
    assert [record for _, record in table_records(path, ",")] == expected


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("日本の首都は？".encode("iso2022_jp"), "is ISO-2022"),
        ("한국의 수도는?".encode("iso2022_kr"), "is ISO-2022"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n", "is the pointer that Git LFS keeps"),
    ],
)
def test_what_looks_like_plain_ascii_and_is_not_the_text(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        text_of(path)


def test_a_file_of_nul_bytes_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    """What an aborted download leaves behind: 8 GB that take no room on the disk."""
    path = tmp_path / "x.csv"
    with path.open("wb") as handle:
        handle.write(b"question,A,B\n")
        handle.truncate(2**33)
    with pytest.raises(DataError, match="row 2: holds NUL bytes"):
        encoding_of(path)


def test_a_long_line_is_one_line_however_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_audit.shared.textfiles.encodings._PIECE", 5)
    path = tmp_path / "x.txt"
    for text in ("中国的首都是北京", "a" * 9 + "é\nbé", "ab\ncdefgh\n中国", "\n\nabcde\n中"):
        path.write_text(text, encoding="utf-8")
        assert encoding_of(path) == "utf-8-sig" and text_of(path) == text
    path.write_bytes("ab\n中国的首都是北京".encode("gb18030"))
    with pytest.warns(DataWarning):
        assert encoding_of(path) == "gb18030"
    path.write_bytes(b"a\nbcdefgh\xff\xff\xff\n")
    with pytest.raises(DataError, match="row 2"):
        encoding_of(path)


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="needs Linux, whose kernel makes this file")
def test_what_the_kernel_makes_is_not_read_to_know_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading of it may never end, and a reader refuses it anyway."""

    def endless(path: Path) -> bytes:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(Path, "read_bytes", endless)
    assert content_stamp("/proc/kmsg") == ""
    (tmp_path / "link").symlink_to("/proc/kmsg")
    for state in (file_state, content_state):
        assert state(str(tmp_path / "link")) == ""
    assert not is_file(tmp_path / "link")
    assert content_stamp(tmp_path) == "", "nor in a folder of data"
