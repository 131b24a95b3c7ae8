"""Files of any content: an error of the project that names the file, or what a plain reader gives."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lm_audit.audits.privacy.data.canaries import plant_canaries
from lm_audit.audits.privacy.data.corpus import read_texts
from lm_audit.audits.privacy.data.documents import read_documents
from lm_audit.audits.privacy.data.manifest import Manifest, read_manifest, write_manifest
from lm_audit.audits.privacy.data.preferences import read_preferences
from lm_audit.audits.privacy.files.evidence_file import load_evidence
from lm_audit.audits.privacy.stages.config import StagesConfig, smoke_config
from lm_audit.audits.privacy.stages.stage_option import parse_stages
from lm_audit.errors import DataError, HarnessError, UsageError

READERS: dict[str, Callable[[Path], object]] = {
    "manifest.jsonl": read_manifest,
    "corpus.jsonl": read_texts,
    "preferences.jsonl": read_preferences,
    "documents.jsonl": read_documents,
    "documents.txt": read_documents,
    "evidence.json": load_evidence,
}
quick = settings(deadline=None, max_examples=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
contents = st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))


def outcome(name: str, content: bytes) -> object:
    """What the reader gives, or the error, which names the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return READERS[name](path)
        except DataError as error:
            assert str(path) in str(error)
            return error


@pytest.mark.parametrize("name", READERS)
@quick
@given(contents)
@example(b"\xff\xfe\x00\x00a\x00\x00\x00")
@example(b'{"text": ' + b"[" * 20_000)
@example(b'{"text": ' + b"9" * 5_000 + b"}")
@example(b'{"text": "\\ud800"}')
@example(b'{"text": NaN}')
@example(b'{"text": "a", "text": "b"}')
@example(b'{"kind": "manifest", "schema": 1, "files": [{}]}\n{"kind": "canary"}')
def test_any_bytes_give_rows_or_an_error_that_names_the_file(name: str, content: bytes) -> None:
    outcome(name, content)


def _shows(text: str) -> bool:
    """Whether a letter, number or sign of ASCII stands in it: of others the reader may say that they show nothing."""
    return any(" " < character < "\x7f" for character in text)


@pytest.mark.parametrize("name", ["corpus.jsonl", "documents.jsonl"])
@quick
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(_shows), min_size=1, max_size=5))
@example(["a\u2028b", "e\u0085", "c\x0bd"])
def test_texts_are_read_as_a_plain_reader_reads_them(name: str, texts: list[str]) -> None:
    lines = "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts)
    for content in (lines.encode(), b"\xef\xbb\xbf" + lines.encode(), lines.encode("utf-16")):
        assert outcome(name, content) == texts


def manifest_lines() -> tuple[Manifest, list[str]]:
    manifest = Manifest(tuple(plant_canaries([1, 4], controls=2, seed=3)), 3)
    with tempfile.TemporaryDirectory() as folder:
        write_manifest(manifest, Path(folder) / "m.jsonl")
        return manifest, (Path(folder) / "m.jsonl").read_text().splitlines()


@quick
@given(st.data())
def test_a_manifest_with_a_changed_value_is_refused_or_the_same(data: st.DataObject) -> None:
    manifest, lines = manifest_lines()
    row = data.draw(st.integers(0, len(lines) - 1))
    record = json.loads(lines[row])
    key = data.draw(st.sampled_from(sorted(record)))
    record[key] = data.draw(json_values)
    lines[row] = json.dumps(record)
    found = outcome("manifest.jsonl", "\n".join(lines).encode())
    if not isinstance(found, DataError):
        assert isinstance(found, Manifest)
        assert [c.text for c in found.canaries] == [c.text for c in manifest.canaries]
        assert [c.role for c in found.canaries] == [c.role for c in manifest.canaries]


@quick
@given(st.data())
@example(None)
def test_a_config_with_a_changed_value_is_refused_or_usable(data: st.DataObject | None) -> None:
    record = smoke_config().to_json()
    if data is not None:
        key = data.draw(st.sampled_from(sorted(record)))
        inner = record[key]
        if isinstance(inner, dict) and data.draw(st.booleans()):
            inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(json_values)
        else:
            record[key] = data.draw(json_values)
    try:
        config = StagesConfig.from_json(record)
    except HarnessError as error:
        assert str(error)
        return
    assert StagesConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@quick
@given(st.text(max_size=60))
@example("base=\0,sft=x")
@example("base=" + "a" * 5000)
def test_any_stages_option_is_parsed_or_refused(text: str) -> None:
    try:
        assert "base" in parse_stages(text)
    except HarnessError as error:
        assert "--stages" in str(error)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": float("nan")}, "beta must be a number above 0"),
        ({"beta": -0.1}, "beta"),
        ({"seed": -1}, "seed"),
        ({"repetitions": ()}, "repetitions"),
        ({"repetitions": (0,)}, "repetitions must be at least 1"),
        ({"decoys": 401}, "decoys"),
        ({"members": True}, "members"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"model": ""}, "model spec is empty"),
        ({"model": "tiny:x"}, "tiny"),
        ({"pair_style": "other"}, "pair_style"),
    ],
)
def test_settings_that_cannot_be_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        smoke_config(**changes)


@pytest.mark.parametrize(
    ("stage", "changes", "message"),
    [
        ("sft", {"lr": float("nan")}, r"sft\.lr"),
        ("sft", {"epochs": 0}, r"sft\.epochs must be at least 1"),
        ("dpo", {"batch_size": 0}, r"dpo\.batch_size"),
        ("dpo", {"lr": float("inf")}, r"dpo\.lr"),
        ("sft", {"betas": (0.9, 1.0)}, r"sft\.betas"),
        ("sft", {"final_share": -1.0}, r"sft\.final_share"),
        ("sft", {"max_length": 0}, r"sft\.max_length"),
    ],
)
def test_training_settings_that_cannot_be_are_named(
    stage: str, changes: dict[str, float] | dict[str, int] | dict[str, tuple[float, float]], message: str
) -> None:
    from dataclasses import replace

    settings_ = replace(getattr(smoke_config(), stage), **changes)
    with pytest.raises(UsageError, match=message):
        smoke_config(**{stage: settings_})
