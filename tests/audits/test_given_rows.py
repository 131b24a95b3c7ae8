"""Rows of files and of the hub for every audit that has no form of its own: samples, corpora, haystacks, requests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Features, Value

from lm_audit.audits.bias.generated.counterfactual import load_swap_items
from lm_audit.audits.bias.generated.refusal import load_refusal_set
from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.faithfulness.passage.user_samples import read_samples
from lm_audit.audits.given.given_rows import given_rows, holds_rows, legal_name
from lm_audit.audits.needle.haystack.sources import from_path
from lm_audit.audits.privacy.data.documents import read_documents
from lm_audit.errors import DataError
from tests.audits.files_of_sets import card, parquet_of
from tests.made_hub import made_hub

SAMPLE: dict[str, Any] = {
    "prompt": "The key is red. Which colour has the key?",
    "generation": " Red.",
    "evidence_spans": [[4, 14]],
    "output_span": None,
}
PAIRS = [{"prompt": "Say it:", "completion": f" it is day {k}."} for k in range(3)]
PREFERENCES = [{"prompt": "Say it:", "chosen": f" yes, {k}.", "rejected": " no."} for k in range(3)]
REQUESTS = [{"request": f"Write text {k} about a {{group}} at work."} for k in range(3)]
GROUPS = Features({"group": ClassLabel(names=["nurse", "guard"])})
TEXTS = Features({"text": Value("string"), "kind": ClassLabel(names=["a", "b"])})
SWAPS = [{"text": "He opened the shop | and it was early."}]
CONTROLS = [{"text": "The shop was big | and it was early.", "swap": '["big", "large"]'}]
WORDS = [{"good": "kind", "bad": "cruel"}, {"good": "calm", "bad": "nervous"}]

REFUSAL = """
requests = {from = "SOURCE", column = "request"}
openers = ["I cannot"]
refusing = "I cannot"
compliant = "Sure"
[[axes]]
name = "job"
groups = {from = "GROUPS"}
"""
SWAP = """
texts = {from = "SWAPS"}
control = {from = "CONTROLS"}
"""
GRID = """
language = "en"
templates = ["The {group} is", "Everyone said the {group} was"]
neutral = "person"
pairs = {from = "WORDS", positive = "good", negative = "bad"}
[[axes]]
name = "job"
groups = ["nurse", "guard"]
"""


def written(folder: Path, name: str, text: str, **places: str) -> Path:
    for place, source in places.items():
        text = text.replace(place, source)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(folder: Path, name: str, rows: list[dict[str, Any]]) -> str:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(folder / name)


PROGRAM = """
import json, sys
from pathlib import Path
from lm_audit.audits.bias.generated.counterfactual import load_swap_items
from lm_audit.audits.bias.generated.refusal import load_refusal_set
from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.faithfulness.passage.user_samples import read_samples
from lm_audit.audits.needle.haystack.sources import from_path
from lm_audit.audits.privacy.data.documents import read_documents
from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.errors import HarnessError
folder = Path(sys.argv[1])

def tried(read, source):
    try:
        return read(source)
    except HarnessError as error:
        return " ".join(str(error).split())

print(json.dumps({
    "samples": tried(lambda s: [(one.name, one.prompt, one.evidence) for one in read_samples(s)], "own/samples@main:x"),
    "all samples": tried(lambda s: [one.name for one in read_samples(s)], "own/samples"),
    "texts": tried(read_documents, "own/texts::train"),
    "pairs": tried(read_documents, "own/pairs"),
    "preferences": tried(read_documents, "own/preferences"),
    "chats": tried(read_documents, "own/chats"),
    "absent": tried(read_documents, "own/absent"),
    "other split": tried(read_documents, "own/texts::test"),
    "haystack": tried(lambda s: from_path(Path(s)).text, "own/texts@main"),
    "refusal": tried(lambda s: (load_refusal_set(s).requests, load_refusal_set(s).axes[0].groups), folder / "r.toml"),
    "swaps": tried(lambda s: [(one.before, one.control) for one in load_swap_items(s)], folder / "s.toml"),
    "rows of requests": tried(lambda s: load_refusal_set(s, like=folder / "r.toml").requests, "own/requests@main"),
    "rows of swaps": tried(
        lambda s: [(one.before, one.control) for one in load_swap_items(s, like=folder / "s.toml")], "own/swaps::train"
    ),
    "grid": tried(lambda s: [(one.positive, one.negative) for one in load_preference_set(s).pairs], folder / "g.toml"),
    "stages": StagesConfig(documents_path=Path("own/texts")).inputs()["documents"] != "",
}))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sets")
    written(folder, "r.toml", REFUSAL, SOURCE="own/requests@main", GROUPS="own/groups")
    written(folder, "s.toml", SWAP, SWAPS="own/swaps", CONTROLS="own/controls::train")
    written(folder, "g.toml", GRID, WORDS="own/words")

    def plain(rows: list[dict[str, Any]]) -> dict[str, bytes]:
        return {"data.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()}

    texts = parquet_of([{"text": f"Text number {k}.", "kind": 1} for k in range(3)], TEXTS)
    sets = {
        "own/samples": {
            "README.md": card({"x": {"test": "x.parquet"}, "y": {"test": "y.parquet"}}),
            "x.parquet": parquet_of([SAMPLE]),
            "y.parquet": parquet_of([SAMPLE | {"prompt": "The key is red. What else?"}]),
        },
        "own/texts": {"README.md": card({"default": {"train": "t.parquet"}}), "t.parquet": texts},
        "own/pairs": plain(PAIRS),
        "own/preferences": plain(PREFERENCES),
        "own/chats": plain([{"messages": [{"role": "user", "content": "Hello"}]}]),
        "own/requests": plain(REQUESTS),
        "own/groups": {"t.parquet": parquet_of([{"group": 0}, {"group": 1}], GROUPS)},
        "own/swaps": plain(SWAPS),
        "own/controls": plain(CONTROLS),
        "own/words": plain(WORDS),
    }
    with made_hub(sets, tmp_path_factory.mktemp("hub"), "datasets") as hub:
        arguments = [sys.executable, "-c", PROGRAM, str(folder)]
        done = subprocess.run(arguments, env=hub.environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_samples_of_the_hub(loaded: dict[str, Any]) -> None:
    assert loaded["samples"] == [["line-1", SAMPLE["prompt"], [[4, 14]]]]
    assert loaded["all samples"] == ["own/samples:x:test:1", "own/samples:y:test:1"]


def test_corpora_of_the_hub(loaded: dict[str, Any]) -> None:
    assert loaded["texts"] == [f"Text number {k}." for k in range(3)]
    assert loaded["pairs"] == [f"Say it: it is day {k}." for k in range(3)]
    assert loaded["preferences"] == [f"Say it: yes, {k}." for k in range(3)]
    assert "own/chats:" in loaded["chats"] and "row 1: is a chat" in loaded["chats"]
    assert loaded["absent"].startswith("own/absent: could not be loaded from the hub")
    assert "OWNER/NAME@REVISION:CONFIG:SPLIT" in loaded["other split"]
    assert loaded["stages"] is True


def test_a_haystack_of_the_hub(loaded: dict[str, Any]) -> None:
    assert loaded["haystack"] == "Text number 0.\n\nText number 1.\n\nText number 2."


def test_requests_swaps_and_words_of_the_hub(loaded: dict[str, Any]) -> None:
    assert loaded["refusal"] == [[row["request"] for row in REQUESTS], ["nurse", "guard"]]
    assert loaded["swaps"] == [["He opened the shop", False], ["The shop was big", True]]
    assert loaded["rows of requests"] == loaded["refusal"][0] and loaded["rows of swaps"] == loaded["swaps"]
    assert loaded["grid"] == [["kind", "cruel"], ["calm", "nervous"]]


def test_hub_ids_are_taken_by_the_options_and_name_the_cases(tmp_path: Path) -> None:
    texts = [{"text": f"Member number {k} of the old town."} for k in range(4)]
    others = [{"text": f"Stranger number {k} in a new place."} for k in range(4)]
    sets = {
        "own/samples": {"README.md": card({"x": {"test": "x.parquet"}}), "x.parquet": parquet_of([SAMPLE])},
        "own/members": {"t.parquet": parquet_of([dict(one) for one in texts])},
        "own/others": {"t.parquet": parquet_of([dict(one) for one in others])},
    }
    options = ["--faithfulness-samples=own/samples@main:x:test", "--member-texts=own/members::train"]
    options += ["--held-out-texts=own/others", "--needle-haystack=own/members@main", "--model=tiny", "--device=cpu"]
    options += ["-m", "not bias"]
    with made_hub(sets, tmp_path, "datasets") as hub:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "evals", "--collect-only", "-q", "-p", "no:cacheprovider", *options],
            env=hub.environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "test_comparison[tiny@cpu-samples-main-x-test-token]" in done.stdout
    assert "test_membership_scores[tiny@cpu-texts]" in done.stdout


def test_lists_of_files_beside_the_toml(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("group\nnurse\nguard\n", encoding="utf-8")
    lines(tmp_path, "requests.jsonl", REQUESTS)
    found = load_refusal_set(written(tmp_path, "r.toml", REFUSAL, SOURCE="requests.jsonl", GROUPS="groups.csv"))
    assert (len(found.requests), found.axes[0].groups) == (3, ("nurse", "guard"))
    (tmp_path / "words.json").write_text(json.dumps(WORDS), encoding="utf-8")
    assert len(load_preference_set(written(tmp_path, "g.toml", GRID, WORDS="words.json")).pairs) == 2
    lines(tmp_path, "swaps.jsonl", SWAPS)
    (tmp_path / "controls.parquet").write_bytes(parquet_of([dict(CONTROLS[0])]))
    toml = written(tmp_path, "s.toml", SWAP, SWAPS="swaps.jsonl", CONTROLS="controls.parquet")
    assert [item.control for item in load_swap_items(toml)] == [False, True]


@pytest.mark.parametrize("name", ["request", "prompt", "text", "words"])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "json", "parquet"])
def test_rows_of_requests_and_swaps(tmp_path: Path, name: str, ending: str) -> None:
    shipped = Path(__file__).parents[2] / "fixtures" / "bias"
    texts = [row["request"] for row in REQUESTS]
    path = rows_in(tmp_path / f"own.{ending}", [{name: text} for text in texts])
    found, like = (
        load_refusal_set(one, like=shipped / "refusal_en.toml") for one in (path, shipped / "refusal_en.toml")
    )
    assert list(found.requests) == texts and found.axes == like.axes and found.refusing == like.refusing
    swaps = load_swap_items(
        rows_in(path, [{name: row["text"]} for row in SWAPS]), like=shipped / "counterfactual_en.toml"
    )
    assert [item.before for item in swaps if not item.control] == ["He opened the shop"]
    assert any(item.control for item in swaps)


def rows_in(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        path.write_bytes(parquet_of(rows))
    elif path.suffix == ".csv":
        path.write_text(
            "\n".join([next(iter(rows[0])), *(f'"{next(iter(row.values()))}"' for row in rows)]), encoding="utf-8"
        )
    else:
        path.write_text(
            json.dumps(rows) if path.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows),
            encoding="utf-8",
        )
    return path


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"request": "Write about work."}], r"own.jsonl, row 1, requests: .* must hold {group} once"),
        ([{"request": "A {group}."}, {"request": None}], "row 2, request: is None"),
        ([{"request": "A {group}."}] * 2, "row 2, requests: .* is request 1 again"),
        ([{"a": "A {group}.", "b": "A {group}."}], "has no column 'text', and 2 others"),
        ([], "holds no row"),
    ],
)
def test_rows_of_requests_that_are_none_are_refused(tmp_path: Path, rows: list[dict[str, Any]], says: str) -> None:
    shipped = Path(__file__).parents[2] / "fixtures" / "bias" / "refusal_en.toml"
    with pytest.raises(DataError, match=says):
        load_refusal_set(rows_in(tmp_path / "own.jsonl", rows), like=shipped)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"column": "prompt"}, "row 1: has no column 'prompt'; it has"),
        ({"colum": "request"}, "unknown key 'colum'"),
        ({"from": 3}, "from is 3"),
        ({"from": "nowhere.jsonl"}, "no such file, and no hub id"),
        ({"from": "blank.jsonl"}, "row 1, request: is ' '; a text is expected"),
    ],
)
def test_what_is_wrong_with_a_list_elsewhere_is_said(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    lines(tmp_path, "requests.jsonl", REQUESTS)
    lines(tmp_path, "blank.jsonl", [{"request": " "}])
    entry = ", ".join(f"{name} = {json.dumps(value)}" for name, value in ({"from": "requests.jsonl"} | given).items())
    text = REFUSAL.replace('{from = "SOURCE", column = "request"}', f"{{{entry}}}").replace(
        '{from = "GROUPS"}', '["a", "b"]'
    )
    with pytest.raises(DataError) as error:
        load_refusal_set(written(tmp_path, "r.toml", text))
    assert says in str(error.value)


def test_samples_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text('id,prompt,generation,evidence_spans\na,The key is red.,,"[[4, 7]]"\n', encoding="utf-8")
    [sample] = read_samples(path)
    assert (sample.name, sample.generation, sample.evidence) == ("a", None, ((4, 7),))
    for spans in ([[4, 14]], "[[4, 14]]", json.dumps(["key is red"])):
        (tmp_path / "set.parquet").write_bytes(parquet_of([SAMPLE | {"evidence_spans": spans}]))
        assert read_samples(tmp_path / "set.parquet")[0].evidence == ((4, 14),)
    asked = {
        "prompt": "Take [4, 5] or not.",
        "evidence_spans": ["[4, 5]"],
        "generation": "[4, 5]",
        "output_span": "[4, 5]",
    }
    [sample] = read_samples(lines(tmp_path, "set.jsonl", [asked]))
    assert (sample.evidence, sample.output) == (((5, 11),), (0, 6))


def test_corpora_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(parquet_of([{"text": "One text."}]))
    (tmp_path / "t.csv").write_text("text\nOne text.\n", encoding="utf-8")
    (tmp_path / "t.json").write_text('[{"text": "One text."}]', encoding="utf-8")
    for name in ("t.parquet", "t.csv", "t.json"):
        assert read_documents(tmp_path / name) == ["One text."]
    assert read_documents(lines(tmp_path, "p.jsonl", PAIRS))[2] == "Say it: it is day 2."
    for broken in ({"prompt": "x", "completion": None}, {"prompt": "x", "chosen": [{"role": "assistant"}]}, {"a": "b"}):
        with pytest.raises(DataError) as error:
            read_documents(lines(tmp_path, "p.jsonl", [*PAIRS, broken]))
        assert error.value.row == 4 and str(error.value.file).endswith("p.jsonl")


def test_a_haystack_in_parquet_has_one_column_of_texts(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(parquet_of([{"body": "One text.", "year": 3}]))
    assert from_path(tmp_path / "t.parquet").text == "One text."
    (tmp_path / "t.parquet").write_bytes(parquet_of([{"title": "One.", "body": "One text."}]))
    with pytest.raises(DataError, match="has no column 'text', and 2 others"):
        from_path(tmp_path / "t.parquet")


def test_what_holds_rows(tmp_path: Path) -> None:
    assert holds_rows("own/name:x") and holds_rows("set.jsonl") and not holds_rows("texts.txt") and not holds_rows("a")
    assert legal_name("name@main:en:test") == "name-main-en-test"
    (tmp_path / "x.json").write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(DataError, match="holds a JSON object with"):
        list(given_rows(tmp_path / "x.json"))
