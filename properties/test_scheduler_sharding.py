"""Every case is in exactly one shard, whatever the ids, their order and the number of shards."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.plugin.parallel.shard_assignment import SNAP, assign, parse_shard, plan_digest

NAMES = st.text(st.characters(exclude_characters="@[]", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
MODELS = st.sampled_from(["a", "b-1", "gpt-2.xl", "Ünïcode"])
CASES = st.one_of(
    st.builds("t.py::test_x[{}@cpu-{}]".format, MODELS, NAMES),
    st.builds("t.py::test_y[{}@cuda:1-{}]".format, MODELS, NAMES),
    st.builds("t.py::test_z[{}]".format, NAMES),
    st.builds("t.py::test_{}".format, st.integers(0, 99)),
)
IDS = st.lists(CASES, unique=True, max_size=60)


@given(ids=IDS, of=st.integers(1, 80), costs=st.lists(st.floats(0, 1e6), min_size=60, max_size=60))
def test_every_case_is_in_exactly_one_shard(ids: list[str], of: int, costs: list[float]) -> None:
    places = assign(ids, of, dict(zip(ids, costs, strict=False)))
    assert set(places) == set(ids)
    assert all(1 <= place <= of for place in places.values())


@given(ids=IDS, of=st.integers(1, 10), seed=st.integers(0, 9))
def test_order_of_collection_does_not_matter(ids: list[str], of: int, seed: int) -> None:
    shuffled = random.Random(seed).sample(ids, len(ids))
    assert assign(ids, of) == assign(shuffled, of)
    assert plan_digest(ids) == plan_digest(shuffled)


@given(ids=IDS, of=st.integers(1, 10))
def test_no_shard_has_more_than_its_due_and_the_tolerance(ids: list[str], of: int) -> None:
    places = list(assign(ids, of).values())
    due = len(ids) / of
    assert all(places.count(shard) <= due * (1 + 2 * SNAP) + 1 for shard in range(1, of + 1))


@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=6), of=st.integers(1, 8))
def test_models_are_split_by_no_more_than_the_cuts(sizes: list[int], of: int) -> None:
    ids = [f"t.py::test_x[m{model}@cpu-{case}]" for model, size in enumerate(sizes) for case in range(size)]
    places = assign(ids, of)
    loads = {(group_of(case), place) for case, place in places.items()}
    assert len(loads) <= len(sizes) + of - 1


@given(count=st.integers(1, 6), size=st.integers(3, 20))
def test_as_many_models_of_one_size_as_shards_are_not_split(count: int, size: int) -> None:
    ids = [f"t.py::test_x[m{model}@cpu-{case}]" for model in range(count) for case in range(size)]
    places = assign(ids, count)
    assert len({(group_of(case), place) for case, place in places.items()}) == count


@given(ids=IDS)
def test_a_case_added_changes_the_digest(ids: list[str]) -> None:
    assert plan_digest([*ids, "another.py::test_case"]) != plan_digest(ids)


@given(index=st.integers(-3, 30), of=st.integers(-3, 30))
def test_a_shard_is_read_or_refused(index: int, of: int) -> None:
    if 1 <= index <= of:
        assert str(parse_shard(f"{index}/{of}")) == f"{index}/{of}"
    else:
        with pytest.raises(UsageError, match="--shard"):
            parse_shard(f"{index}/{of}")


@pytest.mark.parametrize("text", ["", "1", "a/b", "1/2/3", "1.5/2", "1/"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="2/8"):
        parse_shard(text)
