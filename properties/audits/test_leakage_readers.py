"""Files of any content: an error of the project that names the file, or the rows that a plain reader gives."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lm_audit.audits.leakage import load_benchmark
from lm_audit.audits.leakage.items.reading import sources
from lm_audit.errors import DataError

FORMATS = ("csv", "tsv", "json", "jsonl", "parquet")
quick = settings(deadline=None, max_examples=60)


def read(content: bytes, ending: str) -> list[tuple[int, dict[str, Any]]] | DataError:
    """The rows of a file with this content, or the error, which must name it; the items are tried as well."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"set.{ending}"
        path.write_bytes(content)
        try:
            load_benchmark(path)
        except DataError as error:
            assert str(path) in str(error)
        try:
            [source] = sources(path, header="yes")
            return [(number, dict(row)) for number, row in source.rows]
        except DataError as error:
            assert error.file == str(path)
            return error


finite = st.floats(allow_nan=False, allow_infinity=False)
cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(["question", "choices", "options", "A", "B", "answer", "label", "id", "query", "odd"])
row_objects = st.dictionaries(keys, json_values, max_size=7)


def same(found: Any, wanted: Any) -> bool:
    """Equality in which NaN equals itself."""
    return repr(found) == repr(wanted)


@pytest.mark.parametrize("ending", FORMATS)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")))
@example(content=b"\xff\xfe\x00\x00a\x00\x00\x00")
@example(content=b"\xff\xfea")
@example(content=b"q\0u\0e\0s\0t\0")
@example(content=b'{"question": ' + b"[" * 100_000)
@example(content=b'{"question": ' + b"9" * 5_000 + b"}")
@example(content=b'{"question": "x", "question": "y"}')
@example(content=b'{"question": "\\ud800", "choices": ["a", "b"], "answer": 0}')
@example(content=b"question,A,A,B\nx,y,z,w\n")
@example(content=b'question,A,B\n"x,y,z\n')
@example(content=b"PAR1" + b"\0" * 60 + b"PAR1")
@quick
def test_any_bytes(ending: str, content: bytes) -> None:
    read(content, ending)


@given(
    rows=st.lists(st.lists(cells, min_size=3, max_size=3).filter(lambda r: any(r)), max_size=6),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    ends=st.sampled_from(["\n", "\r\n"]),
    delimiter=st.sampled_from(",\t"),
)
@example([["a\u2028b", "\x0b", "\ufeffx"]], "utf-8", "\n", ",")
@quick
def test_tables(rows: list[list[str]], encoding: str, ends: str, delimiter: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ends, quoting=csv.QUOTE_ALL)
    writer.writerows([["question", "A", "B"], *rows])
    found = read(text.getvalue().encode(encoding), "tsv" if delimiter == "\t" else "csv")
    wanted = list(csv.DictReader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter))
    assert not isinstance(found, DataError), found
    assert [row for _, row in found] == wanted


@given(text=st.text("中文题目选项苹果石头木头答案一二三四五六七八九十", min_size=3, max_size=12))
@quick
def test_tables_in_gbk(text: str) -> None:
    found = read(f"question,A,B\n{text},{text}甲,{text}乙\n".encode("gbk"), "csv")
    if not isinstance(found, DataError):
        assert found[0][1] == {"question": text, "A": f"{text}甲", "B": f"{text}乙"}


def jsonl_text(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(("ending", "write"), [("jsonl", jsonl_text), ("json", json.dumps)])
@given(
    rows=st.lists(
        row_objects.filter(lambda row: not any(isinstance(v, list) for v in row.values())), min_size=1, max_size=4
    ),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
@quick
def test_json_rows(ending: str, write: Callable[[Any], str], rows: list[Any], encoding: str) -> None:
    text = write(rows)
    found = read(text.encode(encoding), ending)
    assert not isinstance(found, DataError), found
    assert same([row for _, row in found], rows)


@given(rows=st.lists(row_objects, min_size=1, max_size=4), cut=st.integers(0, 400))
@quick
def test_broken_json(rows: list[Any], cut: int) -> None:
    content = jsonl_text(rows).encode()[: max(0, len(jsonl_text(rows)) - cut)]
    found = read(content, "jsonl")
    if not isinstance(found, DataError):
        whole = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
        assert all(isinstance(row, dict) for row in whole)


def parquet_bytes(rows: list[dict[str, Any]], **options: Any) -> bytes:
    import pyarrow
    import pyarrow.parquet

    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink, **options)
    return bytes(sink.getvalue())


simple_rows = st.lists(
    st.fixed_dictionaries({"question": cells, "A": cells, "B": cells, "answer": st.none() | st.integers(0, 3)}),
    min_size=1,
    max_size=5,
)


@given(rows=simple_rows)
@quick
def test_parquet_rows(rows: list[dict[str, Any]]) -> None:
    found = read(parquet_bytes(rows), "parquet")
    assert not isinstance(found, DataError), found
    assert [row for _, row in found] == rows


@given(rows=simple_rows, place=st.integers(0, 10_000), value=st.integers(1, 255), keep=st.integers(0, 10_000))
@quick
def test_damaged_parquet(rows: list[dict[str, Any]], place: int, value: int, keep: int) -> None:
    whole = bytearray(parquet_bytes(rows, write_page_checksum=True))
    whole[place % len(whole)] ^= value
    read(bytes(whole), "parquet")
    read(bytes(whole[: keep % len(whole)]), "parquet")
