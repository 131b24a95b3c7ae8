"""Data sets of the hub, by the library that reads them, from a hub of our own: every public set, every form."""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet
import pytest
from datasets import ClassLabel, Features, Sequence, Value

from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.bias.benchmarks.stereoset.items import parse_stereoset
from lm_audit.audits.bias.benchmarks.wino.winobias_items import bracketed, parse_winobias
from lm_audit.audits.given.columnar_rows import columnar_rows
from lm_audit.audits.hub_rows import HubSet, hub_parts, hub_set, named, records, structured
from lm_audit.errors import DataError
from tests.audits.files_of_sets import card, parquet_of
from tests.made_hub import made_hub
from tests.present import present

CROWS = Features(
    {
        "sent_more": Value("string"),
        "sent_less": Value("string"),
        "stereo_antistereo": ClassLabel(names=["stereo", "antistereo"]),
        "bias_type": ClassLabel(names=["race-color", "age"]),
    }
)
PAIR = {"sent_more": "Old cats nap.", "sent_less": "Young cats nap.", "stereo_antistereo": 1, "bias_type": 1}
STEREOSET = Features(
    {
        "target": Value("string"),
        "bias_type": Value("string"),
        "context": Value("string"),
        "sentences": Sequence(
            {
                "sentence": Value("string"),
                "gold_label": ClassLabel(names=["anti-stereotype", "stereotype", "unrelated"]),
                "labels": Sequence({"label": ClassLabel(names=["a", "b"]), "human_id": Value("string")}),
            }
        ),
    }
)
TERM: dict[str, Any] = {
    "target": "chess player",
    "bias_type": "profession",
    "context": "The chess player came in.",
    "sentences": {
        "sentence": ["He was loud.", "He was quiet.", "Rain fell."],
        "gold_label": [0, 1, 2],
        "labels": [{"label": [0, 1], "human_id": ["x", "y"]}] * 3,
    },
}
LINE: dict[str, Any] = {
    "part_number": 3,
    "tokens": ["The", "developer", "met", "the", "designer", "because", "he", "was", "late", "."],
    "coreference_clusters": ["0", "1", "6", "6"],
}
QUESTION = {
    "category": "SES",
    "question_index": "1",
    "question_polarity": "neg",
    "context_condition": "ambig",
    "context": "A cashier and a surgeon waited.",
    "question": "Who was late?",
    "ans0": "The cashier",
    "ans1": "The surgeon",
    "ans2": "Unknown",
    "answer_info": "{'ans0': ['the cashier', 'lowSES'], 'ans1': ['the surgeon', 'highSES'], 'ans2': ['x', 'unknown']}",
    "answer_label": 2,
    "additional_metadata": '{"stereotyped_groups": ["low SES"]}',
}
SENTENCE = {"sentid": "cook.guest.0.male.txt", "sentence": "The cook told the guest that he was late."}
PROGRAM = """
import json, sys
from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.given.columnar_rows import columnar_rows
from lm_audit.audits.hub_rows import HubSet, hub_parts
from lm_audit.errors import HarnessError
found = {}
for source, kind in json.loads(sys.argv[1]):
    try:
        if kind == "streamed":
            parts = hub_parts(HubSet.parse(source), streaming=True)
            found[source + "|" + kind] = [[part.config, part.split, list(part.rows)] for part in parts]
        else:
            found[source + "|" + kind] = load_rows(source, kind)
    except HarnessError as error:
        found[source + "|" + kind] = str(error)
print(json.dumps(found))
"""
ASKED = [
    ("own/pairs", "crows_pairs"),
    ("own/pairs:fr", "crows_pairs"),
    ("own/pairs@main:en:dev", "crows_pairs"),
    ("own/pairs:en", "streamed"),
    ("own/pairs:de", "crows_pairs"),
    ("own/pairs:en:train", "crows_pairs"),
    ("own/absent", "crows_pairs"),
    ("own/terms", "stereoset"),
    ("own/lines", "winobias"),
    ("own/lines:type2_anti", "winobias"),
    ("own/questions", "bbq"),
    ("own/questions", "cbbq"),
    ("own/sentences", "winogender"),
    ("own/sentences", "bbq"),
]


PRESENCE = """
import os, sys
from lm_audit.audits.bias.benchmarks.public_sets import check_set, load_set
from lm_audit.audits.hub_presence import is_settled
from lm_audit.audits.given.columnar_rows import columnar_rows
from lm_audit.audits.hub_rows import HubSet
from lm_audit.errors import HarnessError

def tried(source):
    try:
        check_set(source, "crows_pairs")
    except HarnessError as error:
        return " ".join(str(error).split())
    return f"read {load_set.cache_info().currsize}"

print(tried("own/absent"))
print(tried("own/pairs"), is_settled(HubSet.parse("own/pairs")))
load_set("own/pairs", "crows_pairs")
load_set.cache_clear()
print(is_settled(HubSet.parse("own/pairs")), tried("own/pairs"))
os.environ["HF_ENDPOINT"] = sys.argv[1]
print(len(load_set("own/pairs", "crows_pairs").rows))
print(tried("own/other"))
os.environ["HF_HUB_OFFLINE"] = "1"
print(tried("own/other"))
"""


def test_a_set_of_the_hub_is_read_before_its_case_where_it_is_here_and_looked_up_where_not(
    tmp_path: Path, closed_port: int
) -> None:
    sets = {"own/pairs": {"README.md": card({"en": {"test": "t.parquet"}}), "t.parquet": parquet_of([PAIR], CROWS)}}
    with made_hub(sets, tmp_path, "datasets") as hub:
        done = subprocess.run(
            [sys.executable, "-c", PRESENCE, f"http://127.0.0.1:{closed_port}"],
            env=hub.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    absent, looked_up, cached, read_unreached, unreachable, forbidden = done.stdout.splitlines()
    assert absent.startswith("own/absent: is not there, says the hub (status 404)")
    assert looked_up == "read 0 False"
    assert cached == "True read 1"
    assert (read_unreached, unreachable) == ("1", "read 1")
    assert forbidden.startswith("own/other: could not be loaded from the hub")


UNREACHED = """
from lm_audit.audits.given.columnar_rows import columnar_rows
from lm_audit.audits.hub_rows import HubSet, hub_parts
from lm_audit.errors import HarnessError
try:
    list(hub_parts(HubSet("own/absent")))
except HarnessError as error:
    print(" ".join(str(error).split()))
"""


def test_a_hub_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    asked = []

    class Dropping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked.append(self.client_address)

    with (
        made_hub({}, tmp_path, "datasets") as hub,
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dropping) as server,
    ):
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        environment = hub.environment | {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}"}
        done = subprocess.run([sys.executable, "-c", UNREACHED], env=environment, capture_output=True, text=True)
        server.shutdown()
    assert done.stdout.startswith("own/absent: is not on this machine, and the hub could not be reached: "), done.stderr
    assert len(asked) == 1


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pair, tokens = (
        parquet_of([PAIR], CROWS),
        [word.replace("he", "she") if word == "he" else word for word in LINE["tokens"]],
    )
    lines = {"pro": parquet_of([LINE]), "anti": parquet_of([LINE | {"tokens": tokens}])}
    configs = ("type1_pro", "type1_anti", "type2_pro", "type2_anti")
    sets = {
        "own/pairs": {
            "README.md": card({"en": {"test": "en/t.parquet", "dev": "en/d.parquet"}, "fr": {"test": "fr/t.parquet"}}),
            "en/t.parquet": pair,
            "en/d.parquet": pair,
            "fr/t.parquet": pair,
        },
        "own/terms": {
            "README.md": card({name: {"validation": f"{name}.parquet"} for name in ("intersentence", "intrasentence")}),
            "intersentence.parquet": parquet_of([TERM], STEREOSET),
            "intrasentence.parquet": parquet_of([{**TERM, "context": "He was BLANK."}], STEREOSET),
        },
        "own/lines": {
            "README.md": card({name: {"test": f"{name}.parquet"} for name in configs}),
            **{f"{name}.parquet": lines[name.partition("_")[2]] for name in configs},
        },
        "own/questions": {"data.jsonl": (json.dumps(QUESTION) + "\n").encode()},
        "own/sentences": {"data.jsonl": (json.dumps(SENTENCE) + "\n").encode()},
    }
    with made_hub(sets, tmp_path_factory.mktemp("hub"), "datasets") as hub:
        arguments = [sys.executable, "-c", PROGRAM, json.dumps(ASKED)]
        done = subprocess.run(arguments, env=hub.environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_class_labels_get_their_names_in_every_configuration_and_split(loaded: dict[str, Any]) -> None:
    rows = loaded["own/pairs|crows_pairs"]
    assert [row["_file"] for row in rows] == ["own/pairs:en:test", "own/pairs:en:dev", "own/pairs:fr:test"]
    assert {(row["stereo_antistereo"], row["bias_type"]) for row in rows} == {("antistereo", "age")}
    assert [row["_file"] for row in loaded["own/pairs:fr|crows_pairs"]] == ["own/pairs:fr:test"]
    assert [row["_file"] for row in loaded["own/pairs@main:en:dev|crows_pairs"]] == ["own/pairs@main:en:dev"]
    streamed = loaded["own/pairs:en|streamed"]
    assert [part[:2] for part in streamed] == [["en", "test"], ["en", "dev"]]
    assert streamed[0][2] == [[1, {**PAIR, "stereo_antistereo": "antistereo", "bias_type": "age"}]]


def test_what_the_hub_lacks_is_said(loaded: dict[str, Any]) -> None:
    assert "['en', 'fr']" in loaded["own/pairs:de|crows_pairs"]
    assert "['test', 'dev']" in loaded["own/pairs:en:train|crows_pairs"]
    assert "OWNER/NAME@REVISION:CONFIG:SPLIT" in loaded["own/absent|crows_pairs"]
    assert "lacks ['question_polarity'" in loaded["own/sentences|bbq"]


def test_dictionaries_of_lists_become_records(loaded: dict[str, Any]) -> None:
    items, excluded = parse_stereoset(loaded["own/terms|stereoset"])
    assert not excluded
    assert [item.task for item in items] == ["intersentence", "intrasentence"]
    assert items[0].candidates == ("He was quiet.", "He was loud.", "Rain fell.")


def test_spans_by_token_become_the_published_brackets(loaded: dict[str, Any]) -> None:
    rows = loaded["own/lines|winobias"]
    assert {(row["type"], row["condition"]) for row in rows} == {(1, "pro"), (1, "anti"), (2, "pro"), (2, "anti")}
    items, excluded = parse_winobias(rows)
    assert not excluded and len(items) == 4
    assert items[0].question.sentence == "The developer met the designer because he was late."
    assert items[0].question.candidates[items[0].question.answer] == "the developer"
    # The same sentence with the other pronoun is one cluster, as in the published files.
    assert len({item.pair for item in items if item.type == 1}) == 1
    assert [row["condition"] for row in loaded["own/lines:type2_anti|winobias"]] == ["anti"]


def test_metadata_stored_as_text_is_read(loaded: dict[str, Any]) -> None:
    for kind in ("bbq", "cbbq"):
        (row,) = loaded[f"own/questions|{kind}"]
        assert row["answer_info"]["ans0"] == ["the cashier", "lowSES"]
        assert row["additional_metadata"] == {"stereotyped_groups": ["low SES"]}
        assert row["label"] == 2
    assert loaded["own/sentences|winogender"][0]["sentid"] == SENTENCE["sentid"]


def test_parquet_copies_on_this_machine_read_as_the_hub_does(tmp_path: Path) -> None:
    (tmp_path / "pairs.parquet").write_bytes(parquet_of([PAIR], CROWS))
    (row,) = load_rows(tmp_path / "pairs.parquet", "crows_pairs")
    assert (row["stereo_antistereo"], row["bias_type"], row["_row"]) == ("antistereo", "age", 1)
    (tmp_path / "intersentence").mkdir()
    (tmp_path / "intersentence" / "validation.parquet").write_bytes(parquet_of([TERM], STEREOSET))
    items, excluded = parse_stereoset(load_rows(tmp_path / "intersentence" / "validation.parquet", "stereoset"))
    assert not excluded and items[0].task == "intersentence"
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(columnar_rows(tmp_path / "broken.parquet"))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("own/name", HubSet("own/name")),
        ("own/name@v1.0", HubSet("own/name", "v1.0")),
        ("own/name:en", HubSet("own/name", None, "en")),
        ("own/name::test", HubSet("own/name", None, None, "test")),
        ("own/na.me@0f3c:en-GB:test[:10]", HubSet("own/na.me", "0f3c", "en-GB", "test[:10]")),
        ("own/name@refs/pr/3:en", HubSet("own/name", "refs/pr/3", "en")),
        ("file.csv", None),
        ("folder/file.csv", None),
        ("a/b/c", None),
        ("own/name with space", None),
        ("own/", None),
        ("own/name::train[:10%]+test[5:]", HubSet("own/name", None, None, "train[:10%]+test[5:]")),
        ("own/name:", None),
        ("own/name::", None),
        ("own/name:en:", None),
        ("own/name:en:test:more", None),
        ("file.csv/name", None),
        ("rows.jsonl/rows", None),
    ],
)
def test_names_of_sets(text: str, parsed: HubSet | None) -> None:
    assert HubSet.parse(text) == parsed
    if parsed is not None:
        assert HubSet.parse(str(parsed)) == parsed


def test_a_folder_of_that_name_is_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hub_set("own/name") is not None
    (tmp_path / "own" / "name").mkdir(parents=True)
    assert hub_set("own/name") is None


def test_a_folder_is_not_read_as_a_revision_of_the_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owner" / "set").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"a folder 'owner/set' is here, which `datasets` would read"):
        next(hub_parts(present(hub_set("owner/set@0123abc"))))


def test_labels_at_any_depth_and_unknown_ones() -> None:
    features = Features(
        {
            "plain": ClassLabel(names=["no", "yes"]),
            "many": Sequence(ClassLabel(names=["no", "yes"])),
            "records": [{"mark": ClassLabel(names=["no", "yes"])}],
            "deep": {"mark": ClassLabel(names=["no", "yes"])},
            "text": Value("string"),
        }
    ).to_dict()
    row = {"plain": 1, "many": [0, 1], "records": [{"mark": 1}], "deep": {"mark": 0}, "text": "1", "other": 1}
    assert named(row, features) == {
        "plain": "yes",
        "many": ["no", "yes"],
        "records": [{"mark": "yes"}],
        "deep": {"mark": "no"},
        "text": "1",
        "other": 1,
    }
    assert named({"plain": -1}, features) == {"plain": None}
    assert named({"plain": "yes"}, features) == {"plain": "yes"}
    by_number = {"plain": {"_type": "ClassLabel", "names": {"0": "no", "1": "yes"}}}
    assert named({"plain": 1}, by_number) == {"plain": "yes"}
    assert named({"plain": 1}, {"plain": {"_type": "ClassLabel", "num_classes": 2}}) == {"plain": 1}


def test_a_class_number_beyond_the_names_is_refused_with_its_row(tmp_path: Path) -> None:
    feature = {"info": {"features": {"answer": {"_type": "ClassLabel", "names": ["A", "B"]}}}}
    table = pyarrow.table({"answer": [0, 1, 2]}).replace_schema_metadata({"huggingface": json.dumps(feature)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet, row 3: holds the class number 2"):
        list(columnar_rows(tmp_path / "x.parquet"))


def test_structures_in_text() -> None:
    assert structured('{"a": [1]}') == {"a": [1]} == structured("{'a': [1]}")
    assert structured("[no list") == "[no list"
    printed = "['a' 'b']"  # as numpy prints an array, which Python would read as one joined text
    assert structured(printed) == printed
    assert structured(3) == 3
    assert records({"a": [1, 2], "b": [3, 4]}) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert records({"a": [1], "b": [3, 4]}) == {"a": [1], "b": [3, 4]}


@pytest.mark.parametrize(
    "clusters",
    [
        ["0", "1", "1", "2"],
        ["0"],
        ["0", "99"],
        ["x", "y"],
        ["2", "1"],
        [0.5, 1],
        [True, 1],
        ["0_0", "１"],
        "01",
        3,
        [[0, 1]],
    ],
)
def test_spans_that_overlap_or_leave_the_line_are_refused(clusters: Any) -> None:
    with pytest.raises(DataError, match="expected"):
        bracketed(["a", "b", "c"], clusters)
