"""P11: the run log."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_audit.audits.privacy.stages.run_metadata import KINDS, RESERVED, append_metadata, payload, read_metadata
from lm_audit.errors import UsageError

COMMON = settings(deadline=None)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
entries = st.dictionaries(st.text().filter(lambda key: key not in RESERVED), values, max_size=4)


@pytest.fixture(autouse=True, scope="module")
def _no_git_calls() -> Iterator[None]:
    """Two processes an entry would make a hundred examples slow; one example below reads the real state."""
    from lm_audit.audits.privacy.stages import run_metadata as metadata

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "_git_state", lambda: ("unknown", None))
        yield


@COMMON
@given(st.lists(st.tuples(st.sampled_from(KINDS), entries), min_size=1, max_size=5), st.data())
def test_p11_every_entry_reads_back_after_a_torn_line(
    tmp_path_factory: pytest.TempPathFactory, items: list[tuple[str, dict[str, object]]], data: st.DataObject
) -> None:
    """P11: true of the source only for clean files; after a torn last line its next good entry is lost too."""
    path = tmp_path_factory.mktemp("p11") / "run_metadata.jsonl"
    torn = data.draw(st.integers(0, len(items)))
    for number, (kind, entry) in enumerate(items):
        if number == torn:
            with path.open("ab") as stream:
                stream.write(b'{"type": "audit", "cut": "of')
        before = copy.deepcopy(entry)
        append_metadata(path, kind, entry)
        assert entry == before, "the caller's mapping was changed"
    found, damaged = read_metadata(path)
    assert [(record["type"], payload(record)) for record in found] == items
    assert len(damaged) == (1 if torn < len(items) else 0)
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.endswith("of"):
            json.loads(line, parse_constant=lambda name: pytest.fail(f"bare {name} in the log"))


@COMMON
@given(st.sampled_from(RESERVED), entries)
def test_p11_reserved_keys_are_refused_not_overwritten(
    tmp_path_factory: pytest.TempPathFactory, key: str, entry: dict[str, object]
) -> None:
    """P11: the source overwrites a user's "timestamp"."""
    path = tmp_path_factory.mktemp("p11") / "run_metadata.jsonl"
    with pytest.raises(UsageError, match=key):
        append_metadata(path, "audit", entry | {key: "mine"})
    assert not path.exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), (1, 2), {1: "a"}, object()])
def test_p11_values_that_json_does_not_give_back_are_refused(tmp_path: Path, value: object) -> None:
    """P11: NaN, tuples and number keys would come back as something else."""
    with pytest.raises(UsageError, match="plain JSON"):
        append_metadata(tmp_path / "log.jsonl", "audit", {"value": value})
