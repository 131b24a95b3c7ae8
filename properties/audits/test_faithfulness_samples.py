"""What holds for every generated sample and every hop recursion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.methods.hops import SpanFunction, multi_hop, observation_mask, split_hops
from lm_audit.audits.faithfulness.passage.samples import generated_samples, load_words, split_thinking
from tests.present import present

WORDS = load_words(Path(__file__).resolve().parents[2] / "fixtures" / "faithfulness" / "samples.toml")


@given(st.sampled_from(["needle", "hops"]), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_samples_are_reproducible_and_their_spans_hold_what_they_say(kind: str, seed: int) -> None:
    samples = generated_samples(kind, WORDS, 3, seed)
    assert samples == generated_samples(kind, WORDS, 5, seed)[:3]
    for sample in samples:
        facts = [sample.prompt[first:last] for first, last in sample.evidence]
        assert all(fact.endswith(".") for fact in facts)
        first, last = present(sample.output)
        answer = present(sample.generation)[first:last]
        assert all(word in " ".join(facts) + " The is in the" for word in answer.rstrip(".").split())
        assert len(facts) == (2 if kind == "hops" else 1)
        if kind == "hops":
            assert split_thinking(present(sample.generation)) == (sample.thinking, sample.output)
            assert sample.evidence[0][1] <= sample.evidence[1][0]


def _random_span_function(columns: int, prompt: int, seed: int) -> SpanFunction:
    rng = np.random.default_rng(seed)
    base = rng.random((columns - prompt, columns))
    base = np.where(np.arange(columns)[None] <= prompt + np.arange(columns - prompt)[:, None], base, 0.0)

    def attribute_span(span: tuple[int, int], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
        omega = np.ones(span[1] - span[0] + 1) if weights is None else weights
        return np.asarray(omega @ base[span[0] : span[1] + 1], dtype=np.float64)

    return attribute_span


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(2, 8), st.integers(0, 4))
@settings(deadline=None)
def test_hops_only_pass_on_mass_they_received(seed: int, prompt: int, generation: int, hops: int) -> None:
    columns = prompt + generation
    through, start = (0, generation - 2), (generation - 1, generation - 1)
    mask = observation_mask(columns, prompt, 0, start)
    found = multi_hop(
        _random_span_function(columns, prompt, seed),
        prompt,
        columns,
        start=start,
        through=through,
        hops=hops,
        mask=mask,
    )
    assert len(found.vectors) == hops + 1 and len(found.ratios) == hops + 1
    assert all(0.0 <= later <= earlier + 1e-12 for earlier, later in zip(found.ratios, found.ratios[1:], strict=False))
    assert (found.observed[:, prompt:] == 0).all()
    np.testing.assert_allclose(found.total, found.observed.sum(axis=0))
    np.testing.assert_allclose(found.mean * (hops + 1), found.total)


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(2, 8), st.integers(1, 9))
@settings(deadline=None)
def test_split_hops_keep_the_mass_of_the_thinking(seed: int, prompt: int, generation: int, parts: int) -> None:
    """Every segment hands on exactly what arrived, so the first segment's mass ends up on observed columns."""
    columns = prompt + generation
    thinking, start = (0, generation - 2), (generation - 1, generation - 1)
    mask = observation_mask(columns, prompt, 0, start)
    attribute_span = _random_span_function(columns, prompt, seed)
    found = split_hops(attribute_span, prompt, columns, start=start, thinking=thinking, parts=parts, mask=mask)
    arrived = found.vectors[0][prompt : prompt + thinking[1] + 1].sum()
    observed = found.observed[1:].sum()
    np.testing.assert_allclose(observed, arrived, rtol=1e-6)


def test_a_dead_end_stops_the_recursion_without_nan() -> None:
    found = multi_hop(
        lambda span, weights: np.array([1.0, 0.0, 0.0]), 1, 3, start=(1, 1), through=(0, 0), hops=3,
        mask=observation_mask(3, 1, 0, None),
    )  # fmt: skip
    assert found.ratios == (0.0, 0.0, 0.0, 0.0)
    assert np.isfinite(found.vectors).all() and found.total.tolist() == [1.0, 0.0, 0.0]
