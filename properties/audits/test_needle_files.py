"""Files of any content that the needle audit reads: an error of the project that names the file, or plain values."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lm_audit.audits.needle import Haystack, NeedleTask, build_sample
from lm_audit.audits.needle.answers.outputs import score_outputs
from lm_audit.audits.needle.grid.folder import claim_folder, read_samples
from lm_audit.audits.needle.grid.plans import folder_plan, read_sizes
from lm_audit.audits.needle.haystack.sources import read_source
from lm_audit.audits.needle.samples.sample import Sample, json_line
from lm_audit.errors import DataError, UsageError
from lm_audit.models.text.byte_tokenizer import byte_tokenizer

quick = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
contents = st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))


@cache
def sample() -> Sample:
    haystack = Haystack("The grass is green. The sky is blue.", byte_tokenizer(2048))
    return build_sample(
        haystack, length=600, depth=50.0, needle=NeedleTask(), seed=1, template="base", tokens_to_generate=8
    )


def grid(folder: Path) -> Path:
    cell = folder / "grid" / "length_000600" / "position_05000.jsonl"
    cell.parent.mkdir(parents=True)
    cell.write_text(json_line(sample()) + "\n", encoding="utf-8")
    return folder / "grid"


READERS: dict[str, Callable[[Path], Any]] = {
    "samples.jsonl": lambda path: list(read_samples(path)),
    "outputs.jsonl": lambda path: score_outputs(grid(path.parent), path),
    "plans.toml": lambda path: read_sizes(path, "smoke"),
    "haystack.txt": read_source,
    "metadata.json": lambda path: claim_folder(path.parent, {"a": 1}, "hash"),
    "length_000600/position_05000.jsonl": lambda path: folder_plan(str(path.parent.parent)),
}


def outcome(name: str, content: bytes) -> Any:
    """What the reader gives, or the error, which names the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        try:
            return READERS[name](path)
        except (DataError, UsageError) as error:
            assert path.name in str(error) or str(path.parent) in str(error)
            return error


@pytest.mark.parametrize("name", READERS)
@quick
@given(contents)
@example(b"")
@example(b"\xff\xfe\x00\x00a\x00\x00\x00")
@example(b'{"id": ' + b"[" * 20_000)
@example(b'{"index": ' + b"9" * 5_000 + b"}")
@example(b'{"pred": "\\ud800"}')
@example(b'{"id": NaN}')
@example(b"a = " + b"[" * 5_000)
def test_any_bytes_give_values_or_an_error_with_the_file(name: str, content: bytes) -> None:
    outcome(name, content)


@quick
@given(st.sampled_from(sorted(sample().to_json())), values)
@example("length", 1e400)
@example("length", True)
@example("target_position", 1e308)
@example("outputs", [])
@example("needle_spans", [[1]])
def test_a_sample_with_any_value_in_a_field_is_read_or_named(name: str, value: Any) -> None:
    line = json.dumps({**sample().to_json(), name: value}, ensure_ascii=True).encode()

    found = outcome("samples.jsonl", line)

    if isinstance(found, DataError):
        assert found.row == 1
    else:
        assert json.loads(json_line(found[0])).keys() == sample().to_json().keys() and found[0].id


@quick
@given(st.dictionaries(st.sampled_from(["id", "pred", "index", "length", "position", "reasoning_content"]), values))
def test_an_output_with_any_values_is_scored_or_named(record: dict[str, Any]) -> None:
    found = outcome("outputs.jsonl", json.dumps({"id": sample().id, "pred": "x", **record}).encode())

    assert isinstance(found, DataError) or 0 <= found[0].scores["all"] <= 1


@quick
@given(
    st.text(
        alphabet=st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), min_size=1, max_size=80
    )
)
def test_a_haystack_reads_alike_in_every_encoding(text: str) -> None:
    plain = outcome("haystack.txt", text.encode())
    for encoding in ("utf-8-sig", "utf-16"):
        other = outcome("haystack.txt", text.encode(encoding))
        assert getattr(other, "text", None) == getattr(plain, "text", None)
