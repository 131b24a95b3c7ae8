"""Every reader of files, with any bytes and any structure: an error that names the file, or a plain reader's rows.

Formats: text, JSON, JSON Lines, CSV, TSV, TOML, and what the audits make of them. Those of the leakage, privacy and
needle audits have further properties in files of their own.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
import tomllib
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lm_audit.audits.bias.benchmarks.rows import KINDS, load_rows
from lm_audit.audits.bias.benchmarks.wino.winogender_items import load_occupation_stats
from lm_audit.audits.bias.generated.counterfactual import load_swap_items
from lm_audit.audits.bias.generated.refusal import load_refusal_set
from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.faithfulness.passage.samples import load_words
from lm_audit.audits.faithfulness.passage.user_samples import read_samples
from lm_audit.errors import DataError, DataWarning, GateError, HarnessError
from lm_audit.gates.reading import read_gates
from lm_audit.shared.textfiles import json_lines, read_json_object, read_toml, table_rows, text_of

quick = settings(deadline=None, max_examples=40)

letters = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | finite | letters,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(letters, json_values, max_size=5)
contents = st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])
ends = st.sampled_from(["\n", "\r\n"])

READERS: dict[str, Callable[[Path], Any]] = {
    "text.txt": text_of,
    "object.json": read_json_object,
    "lines.jsonl": lambda path: list(json_lines(path)),
    "table.csv": lambda path: list(table_rows(path, ",")),
    "table.tsv": lambda path: list(table_rows(path, "\t")),
    "tables.toml": read_toml,
    "gates.toml": read_gates,
    "grid.toml": load_preference_set,
    "refusal.toml": load_refusal_set,
    "swaps.toml": load_swap_items,
    "words.toml": load_words,
    "statistics.tsv": load_occupation_stats,
    "samples.jsonl": read_samples,
}
for _kind in KINDS:
    for _ending in ("csv", "tsv", "json", "jsonl"):
        READERS[f"{_kind}.{_ending}"] = partial(load_rows, kind=_kind)
READERS["pro_stereotyped_type1.txt.dev"] = lambda path: load_rows(path, "winobias")


def outcome(name: str, content: bytes) -> Any:
    """What the reader gives, or the error, which names the file and is one short line."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return READERS[name](path)
        except (DataError, GateError) as error:
            assert str(path) in str(error)
            return error


@pytest.mark.parametrize("name", READERS)
@settings(deadline=None, max_examples=15)
@given(contents)
@example(b"")
@example(b"\xff\xfe\x00\x00a\x00\x00\x00")
@example(b"\xef\xbb\xbf")
@example(b'{"prompt": ' + b"[" * 20_000)
@example(b'[{"target": ' + b"9" * 5_000 + b"}]")
@example(b'{"prompt": "\\ud800"}')
@example(b'{"prompt": NaN}')
@example(b'{"prompt": "a", "prompt": "b"}')
@example(b"a,b,a\n1,2,3\n")
@example(b'a,b\n1,"2\n')
@example(b"a = " + b"[" * 5_000)
@example(b"a = " + b"9" * 5_000)
@example(b"texts = 3\ncontrol = 4\nrequests = 5\naxes = 6\nrefusing = 7\ncompliant = 8\n")
@example(b"[[control]]\ntext = 3\nswap = 4\n[needle]\n[hops]\n")
@example(b"needle = 3\nhops = 4\n")
def test_any_bytes(name: str, content: bytes) -> None:
    outcome(name, content)


@given(text=letters, encoding=encodings)
@quick
def test_text(text: str, encoding: str) -> None:
    assert outcome("text.txt", text.encode(encoding)) == text.removeprefix("\ufeff")


@given(rows=st.lists(objects, max_size=5), encoding=encodings, end=ends, ascii_only=st.booleans())
@example([{"a": "x\u2028y\u2029\u0085\x0b"}], "utf-8", "\n", False)
@quick
def test_json_lines(rows: list[dict[str, Any]], encoding: str, end: str, ascii_only: bool) -> None:
    text = "".join(json.dumps(row, ensure_ascii=ascii_only) + end for row in rows)
    found = outcome("lines.jsonl", text.encode(encoding))
    assert found == list(enumerate(rows, start=1))


@given(row=objects, cut=st.integers(0, 60))
@quick
def test_json_that_is_cut(row: dict[str, Any], cut: int) -> None:
    text = json.dumps(row)[: max(0, len(json.dumps(row)) - cut)]
    found = outcome("object.json", text.encode())
    try:
        wanted = json.loads(text)
    except ValueError:
        assert isinstance(found, DataError)
    else:
        assert found == wanted


@given(
    rows=st.lists(st.lists(letters, min_size=3, max_size=3), max_size=5),
    names=st.lists(letters.filter(lambda name: name.strip("\ufeff")), min_size=3, max_size=3),
    encoding=encodings,
    end=ends,
    tabs=st.booleans(),
)
@quick
def test_tables(rows: list[list[str]], names: list[str], encoding: str, end: str, tabs: bool) -> None:
    text, delimiter = io.StringIO(newline=""), "\t" if tabs else ","
    csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    found = outcome("table.tsv" if tabs else "table.csv", text.getvalue().encode(encoding))
    if len(set(names)) < len(names):
        assert isinstance(found, DataError) and "two columns" in str(found)
        return
    wanted = list(csv.DictReader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter))
    assert not isinstance(found, DataError) and [row for _, row in found] == wanted


toml_values = (
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | finite | letters | st.lists(st.integers(0, 9), max_size=3)
)


def toml_text(table: dict[str, Any]) -> str:
    """Keys and values that JSON and TOML write alike."""
    return "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in table.items())


@given(table=st.dictionaries(letters, toml_values, max_size=5), encoding=encodings)
@quick
def test_toml(table: dict[str, Any], encoding: str) -> None:
    text = toml_text(table)
    found = outcome("tables.toml", text.encode(encoding))
    try:
        wanted = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # half of a pair written as two escapes
        assert isinstance(found, DataError)
    else:
        assert found == wanted


limit_keys = st.sampled_from(["max", "min", "target", "within", "n_min", "models", "cases", "odd"])
limit_values = toml_values | st.lists(letters, max_size=2) | st.sampled_from([0.5, 5, ["a"], "*x*"])


@given(table=st.dictionaries(limit_keys, limit_values, max_size=4))
@quick
def test_gates(table: dict[str, Any]) -> None:
    found = outcome("gates.toml", ("[bias.gap]\n" + toml_text(table)).encode())
    if not isinstance(found, HarnessError):
        [gate] = found
        assert gate.metric == "bias.gap" and gate.low <= gate.high and set(table) <= {*table} - {"odd"}


sample_values = st.none() | st.integers(-1, 3) | letters | st.lists(st.integers(0, 6), max_size=3) | st.just("abc")


@given(
    record=st.dictionaries(
        st.sampled_from(["id", "prompt", "generation", "thinking_span", "output_span", "evidence_spans", "odd"]),
        sample_values | st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), max_size=3),
        max_size=6,
    )
)
@example({"prompt": "abcdef", "evidence_spans": [[0, 3], [2, 5]]})
@example({"prompt": "abcdef", "generation": "abcdef", "thinking_span": [0, 3], "output_span": [3, 6]})
@quick
def test_samples(record: dict[str, Any]) -> None:
    found = outcome("samples.jsonl", json.dumps(record).encode())
    if isinstance(found, DataError):
        return
    [sample] = found
    assert sample.prompt == record["prompt"] and "odd" not in record
    ordered = sorted(sample.evidence)
    assert all(0 <= first < last <= len(sample.prompt) for first, last in ordered)
    assert all(one[1] <= other[0] for one, other in pairwise(ordered))
    if sample.thinking and sample.output:
        assert sample.thinking[1] <= sample.output[0] or sample.output[1] <= sample.thinking[0]


FIELDS: dict[str, tuple[str, ...]] = {
    "grid.toml": ("language", "templates", "axes", "pairs", "neutral", "separator", "terminator"),
    "refusal.toml": ("requests", "axes", "openers", "refusing", "compliant", "language"),
    "swaps.toml": ("texts", "control"),
    "words.toml": ("needle", "hops"),
}
ENTRIES = (
    "name",
    "groups",
    "reference",
    "positive",
    "negative",
    "text",
    "swap",
    "fillers",
    "owners",
    "needle",
    "answer",
)
some_texts = st.lists(st.sampled_from(["The {group} is", "a man | b", "", "x"]) | letters, max_size=3)


@pytest.mark.parametrize("name", FIELDS)
@given(data=st.data())
@quick
def test_tables_of_audits(name: str, data: st.DataObject) -> None:
    """Every known key with values of any kind, and tables in their places."""
    plain = data.draw(st.dictionaries(st.sampled_from(FIELDS[name]), toml_values | some_texts))
    text = toml_text(plain)
    for key in FIELDS[name]:
        if key not in plain:
            for entry in data.draw(
                st.lists(st.dictionaries(st.sampled_from(ENTRIES), toml_values | some_texts), max_size=2)
            ):
                text += f"[[{key}]]\n{toml_text(entry)}"
    outcome(name, text.encode())
