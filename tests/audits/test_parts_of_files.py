"""``FILE:SPLIT`` and ``FOLDER:CONFIG:SPLIT`` name parts of what is on the disk, in every audit; gzip is read."""

from __future__ import annotations

import gzip
import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.faithfulness.passage.user_samples import read_samples
from lm_audit.audits.given.given_rows import given_rows
from lm_audit.audits.hub_rows import hub_set
from lm_audit.audits.leakage.items.loading import load_benchmark
from lm_audit.audits.needle.haystack.sources import from_path
from lm_audit.audits.privacy.data.documents import read_documents
from lm_audit.errors import DataError
from lm_audit.models.loading.identity.spec_identity import content_state
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.record.options_record import named_contents
from lm_audit.shared.textfiles import on_disk, packed, text_of
from lm_audit.shared.textfiles.remembering import content_stamp

PAIR = {"sent_less": "Young cats nap.", "stereo_antistereo": "stereo", "bias_type": "age"}


def _pairs(*names: str) -> list[dict[str, Any]]:
    return [{"sent_more": f"Old {name} naps.", **PAIR} for name in names]


def _questions(*names: str) -> list[dict[str, Any]]:
    return [
        {"question": f"Which is {name} {k}?", "A": f"{k}", "B": f"not {k}", "answer": "AB"[k % 2]}
        for name in names
        for k in range(2)
    ]


def _written(path: Path, rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text(json.dumps(rows))
    return path


def _more(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["sent_more"].split()[1] for row in rows]


def test_the_split_of_a_document_is_named_behind_its_file(tmp_path: Path) -> None:
    file = _written(tmp_path / "pairs.json", {"train": _pairs("tom"), "test": _pairs("ann")})
    assert _more(load_rows(f"{file}:test", "crows_pairs")) == ["ann"]
    assert [row.values["sent_more"] for row in given_rows(f"{file}:train")] == ["Old tom naps."]
    with pytest.raises(DataError, match=r"has no part 'dev'; it has train, test"):
        load_rows(f"{file}:dev", "crows_pairs")


def test_the_clone_of_a_hub_set_has_its_configurations_and_splits(tmp_path: Path) -> None:
    for config in ("high", "high_school"):
        for split in ("test", "train"):
            _written(tmp_path / f"{config}/{split}-00000-of-00001.parquet", _questions(f"{config} {split}"))
    asked = {item.question for item in load_benchmark(f"{tmp_path}:high:test").items}
    assert asked == {"Which is high test 0?", "Which is high test 1?"}
    assert load_benchmark(f"{tmp_path}::test").files == ("high/test", "high_school/test")
    assert load_benchmark(f"{tmp_path}:high_school").files == ("high_school/test", "high_school/train")
    assert len(list(given_rows(f"{tmp_path}:high:train"))) == 2
    with pytest.raises(DataError, match=r"has no part 'low'; it has high/test-00000-of-00001, "):
        load_benchmark(f"{tmp_path}:low:test")


def test_the_clone_of_a_hub_set_is_read_whole_and_by_its_default_configuration(tmp_path: Path) -> None:
    for split in ("test", "train"):
        _written(tmp_path / f"data/{split}-00000-of-00001.parquet", _questions(split))
    assert load_benchmark(tmp_path).files == ("data/test", "data/train")
    assert load_benchmark(f"{tmp_path}:default:test").files == ("data/test",)
    assert load_benchmark(f"{tmp_path}:default").files == ("data/test", "data/train")


def test_a_clone_without_its_large_files_is_told(tmp_path: Path) -> None:
    for name in ("set.parquet", "set.arrow"):
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n")
        with pytest.raises(DataError, match=r"pointer that Git LFS keeps in a file's place \(git lfs pull\)"):
            load_benchmark(tmp_path / name)


def test_splits_that_are_named_like_files(tmp_path: Path) -> None:
    for name in ("age", "race", "race_x_gender"):
        _written(tmp_path / f"data/{name}-00000-of-00001.parquet", _pairs(name))
    assert _more(load_rows(f"{tmp_path}:race", "crows_pairs")) == ["race"]
    assert _more(load_rows(f"{tmp_path}:race_x_gender", "crows_pairs")) == ["race_x_gender"]
    for split in ("dev", "test"):
        (tmp_path / f"pro_stereotyped_type1.txt.{split}").write_text(f"1 [The {split}] saw [him].\n")
    assert [row["sentence"] for row in load_rows(f"{tmp_path}:dev", "winobias")] == ["[The dev] saw [him]."]


def test_every_audit_takes_a_part(tmp_path: Path) -> None:
    words = " ".join(["word"] * 60)
    rows = {split: [{"text": f"{split} {words}"}] for split in ("train", "test")}
    file = _written(tmp_path / "texts.json", rows)
    assert [text.split()[0] for text in read_documents(f"{file}:test")] == ["test"]
    assert from_path(Path(f"{file}:train")).text.startswith("train word")
    prompts = _written(tmp_path / "own.json", {"train": [{"prompt": "One?"}], "test": [{"prompt": "Two?"}]})
    assert [sample.prompt for sample in read_samples(f"{prompts}:test")] == ["Two?"]


def test_a_name_that_holds_a_colon_is_the_file_of_that_name(tmp_path: Path) -> None:
    _written(tmp_path / "pairs.json", {"train": _pairs("tom"), "test": _pairs("ann")})
    whole = _written(tmp_path / "pairs.json:test", _pairs("colon"))
    whole = whole.rename(tmp_path / "a:b.json")
    assert on_disk(whole).parts == () and _more(load_rows(whole, "crows_pairs")) == ["colon"]
    with pytest.raises(DataError, match="no such file"):
        load_rows(f"{tmp_path}/pairs.json:", "crows_pairs")


def test_a_table_has_no_parts(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("sent_more,sent_less,stereo_antistereo,bias_type\na b,c,stereo,age\n")
    with pytest.raises(DataError, match="one table, without parts"):
        load_rows(f"{tmp_path}/pairs.csv:test", "crows_pairs")
    with pytest.raises(DataError, match="one table, without parts"):
        load_benchmark(f"{_written(tmp_path / 'q.json', _questions('x'))}:test")


def test_a_folder_here_is_no_set_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hub_set("own/set:high:test") is not None
    _written(tmp_path / "own/set/high/test.json", _pairs("ann"))
    assert hub_set("own/set:high:test") is None
    before = content_stamp("own/set:high:test")
    options = RunOptions(data={"crows_pairs": "own/set:high:test"})
    (flag, text, state), *_ = named_contents(options)
    assert (flag, text) == ("--data crows_pairs", "own/set:high:test")
    assert state == content_state("own/set") != "", "a run that goes on is held against the file, not its name"
    _written(tmp_path / "own/set/high/test.json", _pairs("eve"))
    assert content_stamp("own/set:high:test") != before != ""


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".csv"])
def test_what_gzip_packed_is_read(tmp_path: Path, ending: str) -> None:
    rows = _questions("packed")
    text = {
        ".jsonl": "\n".join(map(json.dumps, rows)),
        ".json": json.dumps(rows),
        ".csv": "question,A,B,answer\n" + "".join(",".join(row.values()) + "\n" for row in rows),
    }[ending]
    (tmp_path / f"set{ending}.gz").write_bytes(gzip.compress(text.encode()))
    for source in (tmp_path / f"set{ending}.gz", tmp_path):
        found = load_benchmark(source)
        assert [item.question for item in found.items] == [row["question"] for row in rows]
        assert found.files == ("set",)
    assert [row.values for row in given_rows(tmp_path / f"set{ending}.gz")] == rows


def test_gzip_without_end_or_cut_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"text": "' + b"a" * 3_000_000 + b'"}'))
    assert len(text_of(file)) == 3_000_012
    monkeypatch.setattr(packed, "MOST", 2**20)
    with pytest.raises(DataError, match=r"unpacks to more than 1,048,576 bytes; unpack it"):
        text_of(file)
    file.write_bytes(gzip.compress(b'{"text": "b"}' * 99)[:-20])
    with pytest.raises(DataError, match="is damaged gzip"):
        text_of(file)


@pytest.mark.parametrize(
    ("begins", "does"),
    [(b"PK\x03\x04", "unzip"), (b"\x28\xb5\x2f\xfd", "zstd -d"), (b"BZh", "bunzip2"), (b"\xfd7zXZ\0", "unxz")],
)
def test_other_packings_say_what_unpacks_them(tmp_path: Path, begins: bytes, does: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(begins + b"\0" * 99)
    with pytest.raises(DataError, match=does):
        text_of(tmp_path / "a.jsonl")
    (tmp_path / "a.tar").write_bytes(b"a.csv".ljust(257, b"\0") + b"ustar\0")
    with pytest.raises(DataError, match="tar -xf"):
        text_of(tmp_path / "a.tar")


def test_a_name_is_found_in_either_spelling_of_its_accents(tmp_path: Path) -> None:
    both = (unicodedata.normalize("NFC", "größe/über.json"), unicodedata.normalize("NFD", "größe/über.json"))
    for number, (form, other) in enumerate((both, both[::-1])):
        file = _written(tmp_path / str(number) / form, {"train": _pairs("tom")})
        named = tmp_path / str(number) / other
        assert named != file and text_of(named) == text_of(file)
        for source in (named, f"{named}:train"):
            assert _more(load_rows(source, "crows_pairs")) == ["tom"] and content_stamp(source) == content_stamp(file)
