"""Rows that a user names for any audit, of any content: an error that names the file, or a plain reader's rows."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lm_audit.audits.bias.generated.counterfactual import load_swap_items
from lm_audit.audits.bias.generated.refusal import load_refusal_set
from lm_audit.audits.faithfulness.passage.user_samples import read_samples
from lm_audit.audits.given.given_rows import ENDINGS, given_rows
from lm_audit.audits.leakage import load_benchmark
from lm_audit.audits.leakage.items.labels.in_one_text import labelled_parts
from lm_audit.audits.needle.haystack.sources import from_path
from lm_audit.audits.privacy.data.documents import read_documents
from lm_audit.errors import DataError

quick = settings(deadline=None, max_examples=50)
cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
simple = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8)
json_rows = st.lists(
    st.dictionaries(
        st.sampled_from(["text", "prompt", "completion", "chosen", "id", "request", "evidence_spans"]),
        simple | st.lists(simple, max_size=3),
        max_size=5,
    ),
    min_size=1,
    max_size=4,
)


@contextmanager
def file_of(content: bytes, ending: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"set{ending}"
        path.write_bytes(content)
        yield path


def read(path: Path) -> list[dict[str, Any]] | DataError:
    """The rows, or the error, which must name the file; what audits make of them must be no other error."""
    for reader in (read_documents, read_samples, from_path, load_benchmark):
        try:
            reader(path)
        except DataError as error:
            assert "set" in str(error)
    toml = path.parent / "lists.toml"
    source = json.dumps(path.name)
    toml.write_text(
        f'requests = {{from = {source}}}\nrefusing = "No"\ncompliant = "Yes"\n[[axes]]\nname = "a"\n'
        f"groups = {{from = {source}, column = 'text'}}\n",
        encoding="utf-8",
    )
    for loader in (load_refusal_set, load_swap_items):
        try:
            loader(toml)
        except DataError as error:
            assert error.file is not None
        toml.write_text(f"texts = {{from = {source}}}\ncontrol = {{from = {source}}}\n", encoding="utf-8")
    try:
        return [row.values for row in given_rows(path)]
    except DataError as error:
        assert error.file == str(path)
        return error


@pytest.mark.parametrize("ending", ENDINGS)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")))
@example(content=b"\xff\xfea")
@example(content=b'{"text": ' + b"[" * 100_000)
@example(content=b'{"text": "\\ud800"}')
@example(content=b'[{"text": "a"}, 3]')
@example(content=b"text,text\na,b\n")
@example(content=b"PAR1" + b"\0" * 60 + b"PAR1")
@quick
def test_any_bytes(ending: str, content: bytes) -> None:
    with file_of(content, ending) as path:
        read(path)


@pytest.mark.parametrize("ending", [".jsonl", ".json"])
@given(rows=json_rows)
@quick
def test_json(ending: str, rows: list[dict[str, Any]]) -> None:
    text = json.dumps(rows) if ending == ".json" else "".join(json.dumps(row) + "\n" for row in rows)
    with file_of(text.encode(), ending) as path:
        found = read(path)
    assert found == rows or (isinstance(found, DataError) and "surrogate" in str(found))


@pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ","), (".tsv", "\t")])
@given(rows=st.lists(st.lists(cells, min_size=2, max_size=2).filter(any), max_size=5))
@quick
def test_tables(ending: str, delimiter: str, rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([["text", "prompt"], *rows])
    with file_of(text.getvalue().encode(), ending) as path:
        found = read(path)
    assert found == list(csv.DictReader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter))


@given(
    rows=st.lists(st.fixed_dictionaries({"text": cells, "n": st.none() | st.integers(0, 9)}), min_size=1, max_size=5)
)
@quick
def test_parquet(rows: list[dict[str, Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    with file_of(bytes(sink.getvalue()), ".parquet") as path:
        assert read(path) == rows


ASKED = [
    {"question": f"Which soil is it, {k}?", "choices": ["red clay", "blue sand", "grey silt"], "answer": "ABC"[k % 3]}
    for k in range(6)
]
part_names = st.text("abcxyz_ -é中", min_size=1, max_size=6).filter(str.strip)


@given(names=st.lists(part_names, min_size=1, max_size=3, unique=True), by_id=st.booleans(), around=part_names)
@example(names=["a", "b"], by_id=False, around="_")
@quick
def test_questions_under_any_names_are_the_same_questions(names: list[str], by_id: bool, around: str) -> None:
    size = -(-len(ASKED) // len(names))
    parts = [ASKED[k * size : (k + 1) * size] for k in range(len(names))]
    kept = {name: part for name, part in zip(names, parts, strict=True) if part}
    document: Any = {n: {f"q{k}": row for k, row in enumerate(p)} if by_id else p for n, p in kept.items()}
    for nested in (document, {around: document}):
        with file_of(json.dumps(nested).encode(), ".json") as path:
            benchmark = load_benchmark(path)
        assert [item.question for item in benchmark.items] == [row["question"] for row in ASKED]
        assert [item.answer for item in benchmark.items] == [row["answer"] for row in ASKED]


words = st.lists(st.sampled_from(["red", "blue", "green", "grey", "silt", "clay"]), min_size=1, max_size=3).map(
    " ".join
)


@given(
    options=st.lists(words, min_size=2, max_size=8, unique=True),
    frame=st.sampled_from(["({}) ", "{}. ", "{}) ", "{}、", "{}: ", "[{}] "]),
    separator=st.sampled_from([" ", ", ", "; ", " | ", "\u3000"]),
    lower=st.booleans(),
)
@quick
def test_options_in_one_text_are_the_options(options: list[str], frame: str, separator: str, lower: bool) -> None:
    letters = "abcdefgh" if lower else "ABCDEFGH"
    text = separator.join(frame.format(letter) + option for letter, option in zip(letters, options, strict=False))
    found = labelled_parts(text)
    assert found is not None and list(found.texts) == options and found.labels == tuple(letters[: len(options)])
