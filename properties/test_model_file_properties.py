"""Fuzzed model files: each is refused by a message that names it, or loads as the file that it was made from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lm_audit.errors import ModelError
from lm_audit.models.files.checkpoint import read_checkpoint
from lm_audit.models.files.gguf.header import GgufHeader, read_header
from lm_audit.models.files.safetensors_file import read_entries
from tests.models.files.small_gguf import random_llama, write_gguf
from tests.models.small_models import save_small_llama

FUZZ = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_llama(tmp_path_factory.mktemp("good") / "model")


@pytest.fixture(scope="module")
def good_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "good.gguf", random_llama())


def spoilt_bytes(content: bytes, limit: int) -> st.SearchStrategy[bytes]:
    """The content cut off, lengthened, or with some of its first bytes replaced."""

    def replaced(changes: list[tuple[int, int]]) -> bytes:
        data = bytearray(content)
        for place, value in changes:
            data[place] = value
        return bytes(data)

    places = st.tuples(st.integers(0, min(limit, len(content)) - 1), st.integers(0, 255))
    return (
        st.integers(0, len(content)).map(lambda n: content[:n])
        | st.binary(min_size=1, max_size=16).map(lambda more: content + more)
        | st.lists(places, min_size=1, max_size=6).map(replaced)
    )


def refused_or_equal(path: Path, read: Callable[[Path], Any], want: Any, same: Callable[[Any, Any], bool]) -> None:
    try:
        found = read(path)
    except ModelError as error:
        assert path.name in str(error) and "\n" not in str(error)
        return
    assert same(found, want)


def covers(found: Any, want: Any) -> bool:
    """Whatever was renamed, as many bytes lie at the same places."""
    return [(e.start, e.stop) for e in sorted(found, key=lambda e: (e.start, e.stop))] == [
        (e.start, e.stop) for e in sorted(want, key=lambda e: (e.start, e.stop))
    ]


@FUZZ
@given(data=st.data())
def test_safetensors_bytes(good: Path, tmp_path: Path, data: st.DataObject) -> None:
    source, path = good / "model.safetensors", tmp_path / "model.safetensors"
    path.write_bytes(data.draw(spoilt_bytes(source.read_bytes(), 2000)))

    refused_or_equal(path, read_entries, read_entries(source), covers)


@FUZZ
@given(name=st.integers(0, 20), key=st.sampled_from(["dtype", "shape", "data_offsets"]), value=json_values)
def test_safetensors_headers(good: Path, tmp_path: Path, name: int, key: str, value: Any) -> None:
    source, path = good / "model.safetensors", tmp_path / "model.safetensors"
    content = source.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header[sorted(header)[name % len(header)]][key] = value
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])

    shift = len(text) - length
    want = [(e.start + shift, e.stop + shift) for e in read_entries(source)]
    refused_or_equal(path, read_entries, sorted(want), lambda found, w: sorted((e.start, e.stop) for e in found) == w)


def copied(good: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)
    return shutil.copytree(good, folder)


@FUZZ
@given(data=st.data(), value=json_values)
def test_config_values(good: Path, tmp_path: Path, data: st.DataObject, value: Any) -> None:
    folder = copied(good, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    key = data.draw(st.sampled_from(sorted(config)))
    (folder / "config.json").write_text(json.dumps(config | {key: value}))

    refused_or_equal(
        folder / "config.json",
        lambda path: read_checkpoint(path.parent).config,
        config | {key: value},
        lambda found, want: json.dumps(found) == json.dumps(want),
    )


@FUZZ
@given(data=st.data())
def test_config_bytes(good: Path, tmp_path: Path, data: st.DataObject) -> None:
    folder = copied(good, tmp_path)
    path = folder / "config.json"
    path.write_bytes(data.draw(spoilt_bytes(path.read_bytes(), 4000)))

    refused_or_equal(
        path, lambda path: read_checkpoint(path.parent), None, lambda found, _: found.config["model_type"] != ""
    )


@FUZZ
@given(
    index=st.fixed_dictionaries({"metadata": json_values, "weight_map": json_values})
    | st.fixed_dictionaries(
        {
            "metadata": st.just({}),
            "weight_map": st.dictionaries(
                st.sampled_from(["lm_head.weight", "model.norm.weight", "x"]),
                st.sampled_from(["part.safetensors", "../part.safetensors", "", "other.safetensors"]) | st.text(),
            ),
        }
    )
)
def test_shard_indexes(good: Path, tmp_path: Path, index: Any) -> None:
    folder = copied(good, tmp_path)
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    want = read_entries(folder / "part.safetensors")

    refused_or_equal(
        folder / "model.safetensors.index.json",
        lambda path: list(read_checkpoint(path.parent).entries),
        want,
        lambda found, wanted: found == wanted,
    )


@FUZZ
@given(data=st.data())
def test_gguf_headers(good_gguf: Path, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "spoilt.gguf"
    path.write_bytes(data.draw(spoilt_bytes(good_gguf.read_bytes(), 3000)))

    def plausible(found: GgufHeader, want: GgufHeader) -> bool:
        return len(found.tensors) <= len(want.tensors) and len(found.metadata) <= len(want.metadata)

    refused_or_equal(path, read_header, read_header(good_gguf), plausible)


@FUZZ
@given(data=st.data())
def test_tokenizer_bytes(good: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Refused by name, or read by the library itself."""
    from tokenizers import Tokenizer

    folder = copied(good, tmp_path)
    path = folder / "tokenizer.json"
    path.write_bytes(data.draw(spoilt_bytes(path.read_bytes(), 4000)))

    refused_or_equal(
        path,
        lambda path: read_checkpoint(path.parent),
        None,
        lambda found, _: Tokenizer.from_file(str(path)) is not None,
    )


@FUZZ
@given(
    key=st.sampled_from(["model", "added_tokens", "pre_tokenizer", "decoder", "normalizer", "version"]),
    value=json_values,
)
def test_tokenizer_values(good: Path, tmp_path: Path, key: str, value: Any) -> None:
    from tokenizers import Tokenizer

    folder = copied(good, tmp_path)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))

    refused_or_equal(
        path,
        lambda path: read_checkpoint(path.parent),
        None,
        lambda found, _: Tokenizer.from_file(str(path)) is not None,
    )
