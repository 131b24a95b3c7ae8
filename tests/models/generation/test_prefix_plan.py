"""What is read once for several prompts: parts that are truly shared, in an order in which each can be read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lm_audit.models.generation.prefix_plan import common, shared_parts

PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=12)


def tokens_read(prompts: list[list[int]], worth: int) -> int:
    """Tokens that go through the model when parts of sorted prompts are read by the plan."""
    had = [0] * len(prompts)
    read = 0
    for part in shared_parts(prompts, worth):
        assert {had[row] for row in part.rows} == {part.begin}
        # What the first and the last of sorted prompts begin with, all between begin with.
        assert prompts[min(part.rows)][: part.end] == prompts[max(part.rows)][: part.end]
        assert all(part.end < len(prompts[row]) for row in part.rows)
        read += part.end - part.begin
        for row in part.rows:
            had[row] = part.end
    return read + sum(len(prompt) - begun for prompt, begun in zip(prompts, had, strict=True))


@given(PROMPTS)
def test_every_distinct_prefix_is_read_once_but_for_last_tokens(prompts: list[list[int]]) -> None:
    prompts = sorted(prompts)
    distinct = {tuple(prompt[:end]) for prompt in prompts for end in range(1, len(prompt) + 1)}

    assert len(distinct) <= tokens_read(prompts, 1) <= len(distinct) + len(prompts)


@given(PROMPTS, st.integers(1, 20))
def test_a_part_read_apart_saves_what_it_must(prompts: list[list[int]], worth: int) -> None:
    prompts = sorted(prompts)
    parts = shared_parts(prompts, worth)

    assert all((part.end - part.begin) * (len(part.rows) - 1) >= worth for part in parts)
    saved = sum((part.end - part.begin) * (len(part.rows) - 1) for part in parts)
    assert tokens_read(prompts, worth) == sum(map(len, prompts)) - saved


def test_a_chain_of_prefixes_longer_than_the_stack() -> None:
    prompts = [[1] * length for length in range(2, 1500)]

    assert tokens_read(prompts, 1) <= 1500 + len(prompts)


def test_common() -> None:
    assert [common([1, 2], other) for other in ([1, 2], [1, 3], [1], [2], [1, 2, 3])] == [2, 1, 1, 0, 2]
