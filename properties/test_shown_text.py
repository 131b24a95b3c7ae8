"""Whatever text a ledger holds: a page, valid XML and CSV, in which nothing is hidden and nothing is lost."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import unicodedata
from pathlib import Path
from typing import Any
from xml.parsers import expat

from hypothesis import given, settings
from hypothesis import strategies as st

from lm_audit.report import write_reports
from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.runstore.run import read_run
from lm_audit.shared.visible import is_noncharacter, shown, visible
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run

anything = st.text(st.characters(codec=None), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=6,
)
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def is_shown(text: str) -> bool:
    """Whether nothing in ``text`` is hidden, but for line ends, tabs and the joiner of emoji."""
    return all(c in "\n\t\u200d" or not (unicodedata.category(c) in HIDDEN or is_noncharacter(ord(c))) for c in text)


@given(anything)
def test_shown_text_is_valid_everywhere_and_stays(raw: str) -> None:
    text = visible(raw)
    assert is_shown(text) and visible(text) == text
    expat.ParserCreate().Parse(b"<t>" + text.replace("&", "&amp;").replace("<", "&lt;").encode() + b"</t>", True)
    assert [c for c in raw if is_shown(c)] == [c for c in raw if c in text]


@given(anything)
def test_what_is_written_out_can_be_read_back(raw: str) -> None:
    plain = raw.replace("\\", "")  # A backslash that was there before is not told from one that was written.
    back = "".join(
        c if is_shown(c) else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in plain
    ).replace("\\r", "\\x0d")
    assert visible(plain) == back


@given(values)
def test_shown_values_keep_their_shape(value: Any) -> None:
    made = shown(value)
    assert is_shown(json.dumps(made, ensure_ascii=False)) and shown(made) == made
    assert count(made) == count(value)


def count(value: Any) -> int:
    """How many leaves a value has."""
    if isinstance(value, dict):
        return sum(map(count, value.values()))
    return sum(map(count, value)) if isinstance(value, list) else 1


@settings(max_examples=20)
@given(anything, anything, anything, values, st.lists(st.dictionaries(anything, anything, max_size=2), max_size=3))
def test_a_ledger_with_any_text_gives_a_page_valid_xml_and_csv(
    name: str, model: str, text: str, value: Any, rows: list[dict[str, str]]
) -> None:
    case = MadeCase(
        f"t.py::test_{name}[{model}@cpu-{name}]",
        f"a{name}",
        model,
        outcome="failed",
        message=text,
        metrics={f"m.{name}": Estimate(0.5, note=text, method=name)},
        rows=[{**row, "item": str(at)} for at, row in enumerate(rows)],
        notes=[text],
        parameters={name: value},
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_run(Path(temporary) / "20260101-000000-0000", [case], note=text)
        html = write_reports(folder).read_text(encoding="utf-8")
        junit = (folder / "junit.xml").read_bytes()
        tables = [(folder / f"{table}.csv").read_bytes().decode("utf-8") for table in ("metrics", "items")]
        run = read_run(folder, shown=True)
        kept = read_run(folder)
    assert is_shown(html) and visible(text)[:1] in html
    expat.ParserCreate().Parse(junit, True)
    for table in tables:
        assert is_shown(table)
        assert len({len(row) for row in csv.reader(io.StringIO(table, newline=""))}) == 1
    assert all(is_shown(line) for line in summary_lines(run, width=120))
    assert kept.cases[0].last.notes == (text,) and not kept.damaged


@settings(max_examples=40)
@given(st.data(), values)
def test_a_record_with_any_field_changed_is_read_or_named(data: st.DataObject, value: Any) -> None:
    case = MadeCase(
        "t.py::test_x[m@cpu-a]", "bias", "m", metrics={"bias.x": Estimate(0.5, 0.4, 0.6, 20)}, rows=[{"item": "a"}],
        notes=["note"], parameters={"p": 1}, message="why", outcome="failed",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_run(Path(temporary) / "20260101-000000-0000", [case])
        (ledger,) = (folder / "ledger").iterdir()
        lines = [json.loads(line) for line in ledger.read_text().splitlines()]
        places = list(_places(lines))
        holder, key = data.draw(st.sampled_from(places))
        holder[key] = value
        ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
        write_reports(folder)
        run = read_run(folder, shown=True)
    assert is_shown("".join(summary_lines(run, width=100)))


def _places(value: Any) -> Any:
    """Every field of a structure, as what holds it and its key there."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield value, key
        yield from _places(entry)
