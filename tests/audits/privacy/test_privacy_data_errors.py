"""The error table of the data steps: each says what was wrong, the value, and what would be right."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.privacy.data.canaries import Canary, flip_canaries, generate_canaries, plant_canaries, tiers
from lm_audit.audits.privacy.data.corpus import build_corpus, record_file, verify_training_files, write_corpus
from lm_audit.audits.privacy.data.documents import chunks, read_documents, sample_documents
from lm_audit.audits.privacy.data.insertion import insertion_positions
from lm_audit.audits.privacy.data.manifest import Manifest, read_manifest, write_canary_text, write_manifest
from lm_audit.audits.privacy.data.preferences import build_preferences, ordinary_pairs, read_preferences
from lm_audit.audits.privacy.stages.run_metadata import append_metadata, read_metadata
from lm_audit.errors import DataError, StoreError, UsageError
from lm_audit.models.toy.tiny_text import seeded_text


@pytest.mark.parametrize("n", [0, -3])
def test_too_few_canaries(n: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        generate_canaries(n, seed=0)


def test_unknown_family_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"badge.*rare, struct, phrase, sequence"):
        generate_canaries(1, seed=0, family="badge")


def test_a_family_that_is_too_small_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_audit.audits.privacy.data import canaries, families

    small = families.Family("small", lambda stream, index: ("x ", stream.choice("ab"), ""), 1.0, "ab")
    monkeypatch.setattr(canaries, "FAMILIES", {"small": small})
    with pytest.raises(UsageError, match="no further unique secret after 2"):
        generate_canaries(3, seed=0, family="small")


def test_ratio_above_one_percent_is_refused_and_above_08_warns() -> None:
    documents = [f"text {i}" for i in range(1000)]
    with pytest.raises(UsageError, match="above the limit of 1%"):
        build_corpus(documents, generate_canaries(11, seed=0), seed=0)
    assert build_corpus(documents, generate_canaries(10, seed=0), seed=0).level == "warn"
    assert build_corpus(documents, generate_canaries(8, seed=0), seed=0).level == "ok"


def test_repetitions_count_as_rows_not_as_unique_canaries() -> None:
    corpus = build_corpus([f"text {i}" for i in range(1000)], plant_canaries([16] * 5, controls=3, seed=0), seed=0)
    assert corpus.level == "ok"
    assert corpus.share_unique == pytest.approx(5 / 1005)
    assert corpus.share_rows == pytest.approx(80 / 1080)
    assert corpus.even


def test_more_canary_rows_than_documents() -> None:
    with pytest.raises(UsageError, match="do not fit"):
        insertion_positions(3, 4)


def test_document_that_holds_a_secret() -> None:
    canary = generate_canaries(1, seed=0)[0]
    documents = ["a"] * 150 + [f"note: {canary.secret}"]
    with pytest.raises(DataError, match=r"row 151.*code-00000"):
        build_corpus(documents, [canary], seed=0)


def test_missing_and_empty_canary_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_manifest(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match="manifest header"):
        read_manifest(tmp_path / "empty.jsonl")
    (tmp_path / "header.jsonl").write_text('{"kind": "manifest", "schema": 1}\n')
    with pytest.raises(DataError, match="holds no canary"):
        read_manifest(tmp_path / "header.jsonl")


OWN: list[dict[str, Any]] = [
    {
        "id": f"own-{k}",
        "text": f"The badge of visitor {k} opens with QX{k:02d}-{k * 7919 % 9973:04d}.",
        "secret": secret,
    }
    | {"role": "control" if k % 2 else "member", "repetitions": 0 if k % 2 else 3}
    for k in range(16)
    if (secret := f"QX{k:02d}-{k * 7919 % 9973:04d}")
]


def written_by_hand(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in ({"kind": "manifest", "schema": 1}, *rows)))
    return path


def test_a_manifest_written_by_hand_needs_no_hash_span_or_family(tmp_path: Path) -> None:
    found = read_manifest(written_by_hand(tmp_path / "own.jsonl", OWN))
    assert [(c.role, c.repetitions, c.family) for c in found.canaries[:2]] == [
        ("member", 3, "own"),
        ("control", 0, "own"),
    ]
    assert all(c.text[slice(*c.secret_span)] == c.secret for c in found.canaries)
    write_manifest(found, tmp_path / "again.jsonl")
    assert read_manifest(tmp_path / "again.jsonl").canaries == found.canaries


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "QX00-0000 and QX00-0000"}, "row 2, secret: 'QX00-0000' stands in its text more than once"),
        ({"text": "nothing of it"}, "row 2, secret: 'QX00-0000' is not in its text"),
        ({"secret": ""}, "row 2, secret: a text is needed"),
        ({"text": 3}, "row 2, text: a text is needed"),
    ],
)
def test_a_secret_whose_place_is_not_known(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_manifest(written_by_hand(tmp_path / "own.jsonl", [OWN[0] | changes, *OWN[1:]]))


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    """A manifest with its corpus, as the chain writes them."""
    planted = plant_canaries([1, 2], controls=3, seed=0)
    written = Manifest(tuple(planted), 0, folder=tmp_path)
    write_corpus(build_corpus(seeded_text(300, 1), planted, seed=0), tmp_path / "corpus.jsonl")
    written = record_file(written, tmp_path / "corpus.jsonl", "corpus")
    write_manifest(written, tmp_path / "manifest.jsonl")
    return written


def damage(path: Path, number: int, **changes: int) -> None:
    lines = path.read_text().splitlines()
    lines[number] = json.dumps(json.loads(lines[number]) | changes)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "something else"}, "row 3.*secret_span"),
        ({"role": "negative"}, "row 3.*role.*'member' or 'control'"),
        ({"repetitions": 7, "role": "control"}, "row 3.*repetitions"),
        ({"sha256": "0"}, "row 3.*hash differs"),
        ({"secret_span": [0, 3]}, "row 3.*secret_span"),
        ({"id": " "}, "row 3, id: is empty"),
        ({"family": ""}, "row 3, family: is empty"),
        ({"kind": "manifest"}, "row 3, kind: 'canary' is expected"),
    ],
)
def test_damaged_manifest_names_line_and_field(
    manifest: Manifest, tmp_path: Path, changes: dict[str, str] | dict[str, object] | dict[str, list[int]], message: str
) -> None:
    damage(tmp_path / "manifest.jsonl", 2, **changes)
    with pytest.raises(DataError, match=message):
        read_manifest(tmp_path / "manifest.jsonl")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": True}, "row 1, schema: schema True is not known"),
        ({"assignment": "coins"}, r"row 1, assignment: coins include .* repeated \[1, 2\] times"),
        ({"files": [{"path": "c", "purpose": "corpus", "sha256": "0", "rows": True}]}, "row 1, files"),
        ({"files": [{"path": "c", "purpose": "corpus", "sha256": "0", "rows": -1}]}, "row 1, files"),
    ],
)
def test_a_damaged_header_of_a_manifest_is_named(
    manifest: Manifest, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    damage(tmp_path / "manifest.jsonl", 0, **changes)
    with pytest.raises(DataError, match=message):
        read_manifest(tmp_path / "manifest.jsonl")


def test_manifest_refuses_duplicates_and_changed_roles(manifest: Manifest, tmp_path: Path) -> None:
    twice = replace(manifest, canaries=(*manifest.canaries, manifest.canaries[0]))
    write_manifest(twice, tmp_path / "twice.jsonl")
    with pytest.raises(DataError, match="already on line 2"):
        read_manifest(tmp_path / "twice.jsonl")
    member = next(i for i, c in enumerate(manifest.canaries, 1) if c.role == "member")
    damage(tmp_path / "manifest.jsonl", member, repetitions=9)
    with pytest.raises(DataError, match="changed after the manifest was written"):
        read_manifest(tmp_path / "manifest.jsonl")


def test_training_files_are_verified(manifest: Manifest, tmp_path: Path) -> None:
    verify_training_files(manifest)
    corpus = tmp_path / "corpus.jsonl"
    rows = corpus.read_text()
    corpus.write_text(rows + '{"text": "one more"}\n')
    with pytest.raises(DataError, match="training file changed"):
        verify_training_files(manifest)
    corpus.unlink()
    with pytest.raises(DataError, match="not there"):
        verify_training_files(manifest)


def test_member_that_is_not_in_the_training_file(manifest: Manifest, tmp_path: Path) -> None:
    lost = next(c for c in manifest.canaries if c.repetitions == 2)
    corpus = tmp_path / "corpus.jsonl"
    kept = [line for line in corpus.read_text().splitlines() if lost.secret not in line]
    corpus.write_text("\n".join(kept) + "\n")
    with pytest.raises(DataError, match=rf"{lost.id} is 0 times in the training text, the manifest says 2"):
        verify_training_files(record_file(manifest, corpus, "corpus"))


@pytest.mark.parametrize("purpose", ["corpus", "dpo_with_canary"])
def test_control_that_is_in_a_training_file(manifest: Manifest, tmp_path: Path, purpose: str) -> None:
    twin = next(c for c in manifest.canaries if c.role == "control")
    path = tmp_path / "leaky.jsonl"
    original = (tmp_path / "corpus.jsonl").read_text()
    leak = {"text": f"by accident {twin.secret}"}
    if purpose != "corpus":
        original, leak = "", {"prompt": "p", "chosen": twin.secret, "rejected": "r"}
    path.write_text(original + json.dumps(leak) + "\n")
    with pytest.raises(DataError, match=f"held-out twin {twin.id}"):
        verify_training_files(record_file(manifest, path, purpose))


def test_manifest_without_training_file() -> None:
    with pytest.raises(DataError, match="names no training corpus"):
        verify_training_files(Manifest(tuple(generate_canaries(2, seed=0)), 0))


def test_text_format_carries_no_prefix_and_refuses_line_breaks(tmp_path: Path) -> None:
    canaries = generate_canaries(3, seed=0)
    write_canary_text(canaries, tmp_path / "canaries.txt")
    assert (tmp_path / "canaries.txt").read_text().splitlines() == [c.text for c in canaries]
    broken = Canary("x", "code", "a\nb", "b", (2, 3))
    with pytest.raises(UsageError, match="line break"):
        write_canary_text([broken], tmp_path / "broken.txt")


def test_preferences_errors() -> None:
    members = generate_canaries(2, seed=0)
    with pytest.raises(UsageError, match="need documents"):
        build_preferences([], members, seed=0)
    with pytest.raises(UsageError, match="at least one member"):
        build_preferences(seeded_text(5, 0), [], seed=0)
    with pytest.raises(UsageError, match="pairs_per_canary must be at least 1"):
        build_preferences(seeded_text(5, 0), members, seed=0, pairs_per_canary=0)
    with pytest.raises(UsageError, match="'secret' or 'source'"):
        build_preferences(seeded_text(50, 0), members, seed=0, style="bare")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="70 preference pairs are asked for, the documents give"):
        ordinary_pairs(["too short"] * 200, 70, seed=0)


def test_preference_file_errors(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    with pytest.raises(DataError, match="no such file"):
        read_preferences(path)
    path.write_text("")
    with pytest.raises(DataError, match="holds no preference pair"):
        read_preferences(path)
    path.write_text('{"prompt": "p", "chosen": "c"}\n')
    with pytest.raises(DataError, match=r"row 1.*rejected"):
        read_preferences(path)
    path.write_text('{"prompt": "p", "chosen": "c", "rejected": "c"}\n')
    with pytest.raises(DataError, match=r"row 1.*the same"):
        read_preferences(path)


def test_documents(tmp_path: Path) -> None:
    assert [len(c.split()) for c in chunks("w " * 400, least=50, most=200)] == [50, 147, 93, 110]
    assert all(50 <= len(c.split()) <= 512 for c in chunks("w " * 9000))
    with pytest.raises(DataError, match="no such file"):
        read_documents(tmp_path / "none.txt")
    (tmp_path / "short.txt").write_text("too short")
    with pytest.raises(DataError, match="at least 50 words"):
        read_documents(tmp_path / "short.txt")
    (tmp_path / "rows.jsonl").write_text('{"text": "fine"}\n{"text": ""}\n')
    with pytest.raises(DataError, match=r"row 2.*text"):
        read_documents(tmp_path / "rows.jsonl")
    with pytest.raises(DataError, match="only 2 distinct"):
        sample_documents(["a", "b", "a"], 3, seed=0)


def test_tiers_spread_evenly() -> None:
    assert tiers(5, (1, 4)) == [1, 1, 1, 4, 4]
    with pytest.raises(UsageError, match="at least one repetition level"):
        tiers(5, ())


def test_coins_are_fair_and_independent_of_the_count() -> None:
    flipped = flip_canaries(400, seed=1)
    members = sum(c.role == "member" for c in flipped)
    assert 150 < members < 250
    assert [c.role for c in flip_canaries(200, seed=1)] == [c.role for c in flipped[:200]]


def test_metadata_of_a_missing_file_and_of_a_full_disk(tmp_path: Path) -> None:
    assert read_metadata(tmp_path / "none.jsonl") == ([], [])
    full = tmp_path / "full.jsonl"
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this platform")
    full.symlink_to("/dev/full")
    with pytest.raises(StoreError, match=r"cannot append to .*full\.jsonl: No space left"):
        append_metadata(full, "audit", {"a": 1})


def test_metadata_records_where_it_came_from(tmp_path: Path) -> None:
    append_metadata(tmp_path / "log.jsonl", "audit", {"canary_count": 5})
    (entry,), damaged = read_metadata(tmp_path / "log.jsonl")
    assert not damaged
    assert entry["type"] == "audit"
    assert entry["canary_count"] == 5
    assert {"timestamp", "git_commit", "git_dirty", "versions"} <= entry.keys()
    with pytest.raises(UsageError, match="kind must be one of"):
        append_metadata(tmp_path / "log.jsonl", "sft", {})
