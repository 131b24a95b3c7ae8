"""What holds of every prompt: its length, depths, needles, and that equal seeds give equal bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lm_audit.audits.needle import (
    Haystack,
    NeedleTask,
    build_sample,
    depth_sequence,
    length_sequence,
    nearest_boundary,
    score_all,
    score_any,
    score_boundary,
    write_grid,
)
from lm_audit.audits.needle.haystack.sentences import sentence_ends
from lm_audit.audits.needle.samples.sample import json_line
from tests.audits.needle.text.needle_tokenizers import CHINESE, KINDS, small_tokenizer

SOURCES = {"essay": "essay", "noise": "noise", "chinese": CHINESE * 30}
few = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@cache
def haystack(source: str, kind: str) -> Haystack:
    return Haystack(SOURCES[source], small_tokenizer(kind))


class Prompt(TypedDict):
    """What ``build_sample`` takes."""

    length: int
    depth: float
    seed: int
    index: int
    needle: NeedleTask
    boundary: str
    windows: str
    tokens_to_generate: int


prompts = st.fixed_dictionaries(
    {
        "length": st.integers(950, 5000),
        "depth": st.floats(0, 100),
        "seed": st.integers(0, 2**32),
        "index": st.integers(0, 1000),
        "needle": st.builds(
            NeedleTask,
            st.sampled_from(["words", "numbers", "uuids"]),
            st.sampled_from(["words", "numbers", "uuids"]),
            st.integers(1, 3),
            st.integers(1, 2),
            st.integers(1, 2),
        ),
        "boundary": st.sampled_from(["sentence", "word"]),
        "windows": st.sampled_from(["independent", "shared", "start"]),
        "tokens_to_generate": st.integers(0, 64),
    }
)
haystacks = st.builds(haystack, st.sampled_from(sorted(SOURCES)), st.sampled_from(KINDS))


@few
@given(haystacks, prompts)
def test_prompt_fills_its_length_and_never_exceeds_it(hay: Haystack, prompt: Prompt) -> None:
    sample = build_sample(hay, **prompt)
    tokens = len(hay.encoder.tokenizer(sample.prompt, add_special_tokens=sample.special, verbose=False).input_ids)
    assert prompt["length"] - 2 <= tokens + prompt["tokens_to_generate"] <= prompt["length"]
    assert sample.actual_length == tokens + prompt["tokens_to_generate"]


@few
@given(haystacks, prompts)
def test_every_needle_stands_once_and_whole_and_in_the_order_of_depths(hay: Haystack, prompt: Prompt) -> None:
    sample = build_sample(hay, **prompt)
    assert all(sample.input.count(needle) == 1 for needle in sample.needles)
    assert all(sample.input.count(value) == 1 for value in sample.outputs)
    at = [sample.input.index(needle) for needle in sample.needles]
    by_depth = sorted(range(len(at)), key=lambda i: (sample.target_positions[i], i))
    assert sorted(range(len(at)), key=lambda i: at[i]) == by_depth
    assert list(sample.needle_token_positions) == [begin for begin, _ in sample.needle_spans]


@few
@given(haystacks, prompts)
def test_needle_is_as_near_to_its_depth_as_boundaries_allow(hay: Haystack, prompt: Prompt) -> None:
    plain: Prompt = {**prompt, "needle": NeedleTask()}
    sample = build_sample(hay, **plain)
    start, units = sample.metadata["window_start"], sample.metadata["window_units"]
    places = hay.boundaries(start, units) if prompt["boundary"] == "sentence" else np.arange(units + 1)
    counts = hay.tokens_before(places + start) - hay.tokens_before(start)
    possible = np.abs(100 * counts / counts[-1] - prompt["depth"]).min()
    # Separators round the needle and the last word, which is cut to fill the length, are tokens of the haystack too; a
    # word may be a whole row of a table.
    longest = np.diff(hay.tokens_before(np.arange(units + 1) + start)).max()
    allowed = possible + 100 * (5 + longest) / sample.haystack_tokens
    assert abs(sample.actual_position - sample.target_position) <= allowed
    assert 0 <= sample.actual_position <= 100


@few
@given(haystacks, prompts)
def test_same_seed_gives_the_same_bytes(hay: Haystack, prompt: Prompt) -> None:
    first = json_line(build_sample(hay, **prompt))
    other: Prompt = {**prompt, "index": prompt["index"] + 1}
    build_sample(hay, **other)  # What came before must not matter.
    assert json_line(build_sample(hay, **prompt)) == first


@few
@given(haystacks, prompts, st.integers(1, 5))
def test_another_index_is_another_draw(hay: Haystack, prompt: Prompt, step: int) -> None:
    later: Prompt = {**prompt, "index": prompt["index"] + step}
    one, other = build_sample(hay, **prompt), build_sample(hay, **later)
    assert one.outputs != other.outputs


@settings(deadline=None, max_examples=3)
@given(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from(["niah_single_2", "niah_multikey_3"]))
def test_serial_parallel_and_resumed_grids_are_the_same_bytes(seed: int, stop_after: int, name: str) -> None:
    config = {
        "target_length": 900,
        "length_interval": 450,
        "num_positions": 3,
        "num_samples": 2,
        "tokens_to_generate": 8,
        "random_seed": seed,
        "preset": name,
    }
    tokenizer = small_tokenizer("byte-level")
    with tempfile.TemporaryDirectory() as folder:
        roots = [Path(folder) / kind for kind in ("serial", "parallel", "resumed")]
        write_grid(config, roots[0], tokenizer=tokenizer)
        write_grid(config, roots[1], tokenizer=tokenizer, workers=2)
        with suppress(_Stopped):
            write_grid(config, roots[2], tokenizer=tokenizer, on_cell=_stop_after(stop_after))
        write_grid(config, roots[2], tokenizer=tokenizer)
        assert _content(roots[0]) == _content(roots[1]) == _content(roots[2])


class _Stopped(Exception):
    pass


def _stop_after(count: int) -> Callable[[object, int, int], None]:
    def on_cell(cell: object, done: int, total: int) -> None:
        if done == count:
            raise _Stopped

    return on_cell


def _content(root: Path) -> dict[Path, bytes]:
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "metadata.json")
    return {path.relative_to(root): path.read_bytes() for path in files}


@given(st.integers(1, 10_000), st.integers(1, 2000), st.integers(1, 5000))
def test_lengths_step_up_to_the_target(target: int, interval: int, start: int) -> None:
    lengths = length_sequence(target, interval, start)
    assert all(b - a == interval for a, b in pairwise(lengths))
    assert not lengths or (lengths[0] == start and target - interval < lengths[-1] <= target)
    assert bool(lengths) == (start <= target)


@given(st.integers(1, 101), st.sampled_from(["uniform", "inclusive", "open", "random"]), st.integers(0, 2**32))
def test_depths_ascend_within_0_and_100(n: int, strategy: str, seed: int) -> None:
    depths = depth_sequence(n, strategy, seed=seed)
    assert len(depths) == n
    assert all(0 <= depth <= 100 for depth in depths)
    assert all(a < b for a, b in pairwise(depths))
    assert depths == depth_sequence(n, strategy, seed=seed)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.floats(0, 100))
def test_no_boundary_is_nearer(counts: list[int], depth: float) -> None:
    starts = np.concatenate([[0], np.cumsum(counts)])
    found = nearest_boundary(starts, depth)
    distances = np.abs(starts - depth / 100 * starts[-1])
    assert distances[found] == distances.min()
    assert not (distances[:found] == distances.min()).any()


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_scores_are_shares_in_order(prediction: str, references: list[str]) -> None:
    every, some, whole = (score(prediction, references) for score in (score_all, score_any, score_boundary))
    assert 0 <= whole <= 1
    assert 0 <= every <= some <= 1


@given(st.integers(1_000_000, 9_999_999), st.integers(0, 9))
def test_number_within_a_longer_number_is_no_whole_word(value: int, digit: int) -> None:
    assert score_boundary(f"{value}{digit}", [str(value)]) == 0.0
    assert score_boundary(f"{digit} {value}.", [str(value)]) == 1.0


@given(st.text(alphabet='ab .?!\n。！Mr“”"', max_size=80))
def test_sentence_ends_cover_the_text(text: str) -> None:
    ends = sentence_ends(text)
    assert ends == sorted(set(ends))
    assert not text or ends[-1] == len(text)
