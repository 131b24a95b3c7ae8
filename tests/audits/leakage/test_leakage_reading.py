"""Reading benchmarks: formats, encodings, columns, and what is wrong with a file said by file and row."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.leakage import Item, load_benchmark
from lm_audit.audits.leakage.items.benchmarks import called, named_benchmarks
from lm_audit.audits.leakage.items.reading import sources
from lm_audit.errors import DataError, UsageError

SHIPPED = Path(__file__).resolve().parents[3] / "fixtures" / "leakage"
HEAD = "id,question,A,B,C,D,answer\n"


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("language", ["en", "zh"])
def test_shipped_questions(language: str) -> None:
    benchmark = load_benchmark(SHIPPED / f"general_{language}")
    assert len(benchmark.items) >= 30
    assert benchmark.files == ("culture", "geography", "science")
    assert not benchmark.excluded
    assert all(item.answer for item in benchmark.items)
    assert any("," in item.answer for item in benchmark.items)
    assert len({len(item.options) for item in benchmark.items}) > 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "题.csv", HEAD + "1,下列属于水果的是,苹果,石头,木头,铁块,A\n", encoding)
    [item] = load_benchmark(path).items
    assert item == Item("1", "题", "下列属于水果的是", ("苹果", "石头", "木头", "铁块"), "A")


def test_mixed_encodings_name_both_rows(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    lines = ["1,下列属于水果的是,苹果,石头,木头,铁块,A\n", "2,下列属于金属的是,苹果,石头,木头,铁块,D\n"]
    path.write_bytes(HEAD.encode() + lines[0].encode() + lines[1].encode("gb18030"))
    with pytest.raises(DataError, match="row 2 is UTF-8 and row 3 is GB18030") as error:
        load_benchmark(path)
    assert error.value.row == 3


def test_bytes_of_no_encoding(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(HEAD.encode() + b"1,q\xff\xff\xff,a,b,c,d,A\n")
    with pytest.raises(DataError, match="neither UTF-8 nor GB18030") as error:
        load_benchmark(path)
    assert error.value.row == 2


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,q,a,,c,d,A", "option B is empty"),
        ("1,,a,b,c,d,A", "the question is empty"),
        ("1,q,a,b,,,D", "the answer is 'D', which is none of the options A to B"),
        ("1,q,a,,,,A", "1 options; 2 to 26 are expected"),
        ("1,q,a,b,c,d,maybe", "the answer is 'maybe', which is none of the options A to D"),
    ],
)
def test_unusable_rows_are_counted_and_listed(tmp_path: Path, row: str, reason: str) -> None:
    path = write(tmp_path / "set.csv", HEAD + row + "\n2,q,a,b,c,d,A\n")
    benchmark = load_benchmark(path)
    assert [item.id for item in benchmark.items] == ["2"]
    assert sum(benchmark.excluded.values()) == 1
    [exclusion] = benchmark.exclusions
    assert (exclusion.file, exclusion.row, exclusion.reason) == (str(path), 2, reason)


def test_short_and_equal_options_stay_in(tmp_path: Path) -> None:
    path = write(tmp_path / "set.csv", HEAD + "1,q,5,5,x,长,A\n")
    assert load_benchmark(path).items[0].options == ("5", "5", "x", "长")


def test_a_file_without_any_usable_row(tmp_path: Path) -> None:
    path = write(tmp_path / "set.csv", HEAD + "1,q,a,,c,d,A\n")
    with pytest.raises(DataError, match=r"no usable item in 1 rows: .*option B is empty"):
        load_benchmark(path)


def test_missing_columns_name_what_is_there(tmp_path: Path) -> None:
    path = write(tmp_path / "set.csv", "text,one,two\nq,a,b\n")
    with pytest.raises(DataError, match=r"no column for question and options; it has \['text', 'one', 'two'\]"):
        load_benchmark(path)
    [item] = load_benchmark(path, columns="question=text,options=one|two").items
    assert item.options == ("a", "b")
    with pytest.raises(DataError, match="no column 'nine'"):
        load_benchmark(path, columns="question=nine,options=one|two")
    with pytest.raises(UsageError, match="column mapping 'quest=text'"):
        load_benchmark(path, columns="quest=text")


def test_missing_columns_of_an_empty_file(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x,y\n")
    write(tmp_path / "b.csv", HEAD + "1,q,a,b,c,d,A\n")
    with pytest.raises(DataError, match="no column for question"):
        load_benchmark(tmp_path)


def test_a_broken_table_names_its_row(tmp_path: Path) -> None:
    path = write(tmp_path / "set.csv", HEAD + "1,q,a,b,c,d,A\n2,q,a,b,c,d,A,extra\n")
    with pytest.raises(DataError, match="more fields than the 7 columns") as error:
        load_benchmark(path)
    assert error.value.row == 3
    path = write(tmp_path / "set.jsonl", '{"question": "q", "choices": ["a", "b"], "answer": 0}\n{oops\n')
    with pytest.raises(DataError, match="is not JSON") as error:
        load_benchmark(path)
    assert error.value.row == 2


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"question": "q", "choices": ["a", "b", "c"], "answer": 0}, ("a", "b", "c", "A")),
        ({"question": "q", "options": {"B": "b", "A": "a"}, "answer": "B"}, ("a", "b", "B")),
        ({"question": "q", "choices": {"text": ["a", "b"], "label": ["1", "2"]}, "answerKey": "2"}, ("a", "b", "B")),
        ({"question": "q", "choices": ["a", "b"], "answer": "b"}, ("a", "b", "B")),
        ({"question": "q", "A": "a", "B": "b", "answer": ["A", "B"]}, ("a", "b", "A,B")),
        ({"question": "q", "A": "a", "B": "b", "C": "c", "answer": "C、A"}, ("a", "b", "c", "A,C")),
        ({"题干": "q", "选项": ["a", "b"], "正确答案": "B"}, ("a", "b", "B")),
        ({"problem": "q", "answer_choices": ["a", "b"], "gold_answer": "b"}, ("a", "b", "B")),
        ({"question_text": "q", "possible_answers": ["x", "y"], "answer_letter": "B"}, ("x", "y", "B")),
    ],
)
def test_shapes_of_public_sets(tmp_path: Path, row: dict[str, Any], expected: tuple[str, ...]) -> None:
    path = write(tmp_path / "set.jsonl", json.dumps(row) + "\n")
    [item] = load_benchmark(path).items
    assert (*item.options, item.answer) == expected


def test_parquet_with_a_missing_fourth_option(tmp_path: Path) -> None:
    import pandas as pd

    rows = {"question": ["q1", "q2"], "A": ["a", "a"], "B": ["b", "b"], "C": ["c", "c"], "D": [float("nan")] * 2}
    pd.DataFrame(rows | {"answer": ["A", "C"]}).to_parquet(tmp_path / "cfa.parquet")
    items = load_benchmark(tmp_path / "cfa.parquet").items
    assert [item.options for item in items] == [("a", "b", "c")] * 2


def test_a_folder_is_one_benchmark_with_a_subject_a_file(tmp_path: Path) -> None:
    write(tmp_path / "b.csv", HEAD + "1,q1,a,b,c,d,A\n1,q2,a,b,c,d,A\n")
    write(tmp_path / "a.csv", HEAD + "1,q,a,b,c,d,A\n")
    write(tmp_path / "c.csv", HEAD)
    benchmark = load_benchmark(tmp_path)
    assert benchmark.files == ("a", "b", "c")
    assert [item.key for item in benchmark.items] == ["a:1", "b:1", "b:1#2"]


def test_a_data_set_through_the_hubs_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    from lm_audit.audits import hub_rows

    pytest.importorskip("datasets")
    pd.DataFrame({"question": ["q"], "choices": [["a", "b"]], "answer": [1]}).to_parquet(tmp_path / "test.parquet")
    # The client takes a folder for a set's name; a reader of the hub's sets refuses one that is here.
    monkeypatch.setattr(hub_rows.HubSet, "parse", classmethod(lambda cls, text: cls(str(tmp_path))))
    monkeypatch.setattr(hub_rows, "is_there", lambda path: False)
    benchmark = load_benchmark("owner/set", columns="answer-base=0")
    assert benchmark.files == ("test",)
    assert [(item.options, item.answer) for item in benchmark.items] == [(("a", "b"), "B")]


def test_what_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        list(sources(tmp_path / "absent.csv"))
    with pytest.raises(DataError, match=r"the folder has no file of \.csv"):
        list(sources(tmp_path))
    with pytest.raises(DataError, match=r"is a \.md"):
        list(sources(write(tmp_path / "x.md", "hello")))
    with pytest.raises(DataError, match="is a text file, of which only blocks"):
        [list(one.rows) for one in sources(write(tmp_path / "x.txt", "hello"))]


def test_names_that_are_too_long() -> None:
    [(name, source)] = named_benchmarks(["x" * 5000], []).items()
    assert len(name) == 100
    with pytest.raises(DataError, match="no such file or folder"):
        load_benchmark(source)


def test_names_of_benchmarks(tmp_path: Path) -> None:
    path = str(write(tmp_path / "set.csv", HEAD))
    assert named_benchmarks([path, f"mine={path}", "owner/data@main"], []) == {
        "set": path,
        "mine": path,
        "data-main": "owner/data@main",
    }
    with pytest.raises(UsageError, match="two benchmarks are called 'set'"):
        named_benchmarks([path, path], [])
    assert named_benchmarks(None, [tmp_path]) == {tmp_path.name: str(tmp_path)}


def test_a_sample_is_seeded_and_in_the_files_order(tmp_path: Path) -> None:
    path = write(tmp_path / "set.csv", HEAD + "".join(f"{k},q{k},a,b,c,d,A\n" for k in range(200)))
    first, again, other = (load_benchmark(path, limit=20, seed=seed).items for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 20
    assert [int(item.id) for item in first] == sorted(int(item.id) for item in first)


def peak_of(path: Path) -> int:
    tracemalloc.start()
    try:
        benchmark = load_benchmark(path, limit=50)
        assert len(benchmark.items) == 50
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def write_rows(path: Path, count: int) -> Path:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["id", "question", "A", "B", "C", "D", "answer"])
        writer.writerows([k, f"What is number {k}?", "one", "two", "three", "four", "B"] for k in range(count))
    return path


@pytest.mark.parametrize("rows", [2_500, pytest.param(200_000, marks=pytest.mark.slow)])
def test_memory_stays_flat_in_long_files(tmp_path: Path, rows: int) -> None:
    """But for what tells a repeated row: a digest of each, its place, and the set's own table."""
    short, long = write_rows(tmp_path / "short.csv", 500), write_rows(tmp_path / "long.csv", rows)
    assert peak_of(long) < peak_of(short) + 500_000 + 150 * rows


@pytest.mark.parametrize("limit", [0, -1, True, 1.5])
def test_a_limit_that_leaves_nothing_is_refused(limit: Any) -> None:
    with pytest.raises(UsageError, match="limit must be at least 1"):
        load_benchmark(SHIPPED / "general_en", limit=limit)


def test_a_benchmark_bears_the_name_that_it_was_given(tmp_path: Path) -> None:
    """Two files of one name in two folders: what is found of each, and the table of all, tell them apart."""
    given = []
    for folder, name in (("one", "first="), ("two", "second set="), ("three", "")):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "test.csv"
        path.write_text("question,A,B,answer\nWhat burns?,wood,water,A\n", encoding="utf-8")
        given.append(f"{name}{path}")
    sources = named_benchmarks(given, [])
    names = {name: called(load_benchmark(place), place, given).name for name, place in sources.items()}
    assert names == {"first": "first", "second-set": "second-set", "test": "test"}
    assert called(load_benchmark(sources["test"]), sources["test"], None).name == "test"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow", ".txt"])
def test_a_file_that_is_gone_since_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"gone{suffix}"
    path.write_text("{}\n")

    def looked_at(given: Path) -> Path:
        given.unlink()
        return given

    monkeypatch.setattr("lm_audit.audits.leakage.items.reading.readable_file", looked_at)
    with pytest.raises(DataError, match=r"gone\..*(no such file|cannot be read)"):
        load_benchmark(path)
