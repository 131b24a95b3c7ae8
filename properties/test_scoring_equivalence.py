"""Whatever is asked in one call, every score is what the plain forward of that one sequence gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lm_audit.models.language_model import LanguageModel
from lm_audit.models.scoring.limits import Limits
from lm_audit.models.scoring.plain import forward_logits
from tests.models.scoring.small_models import ARCHITECTURES, VOCABULARY, small_model, small_tokenizer

TORCH = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])

tokens = st.integers(0, VOCABULARY - 1)
some_limits = st.builds(
    Limits,
    soft=st.integers(1, 24),
    hard=st.integers(24, 64),
    tokens=st.integers(1, 128),
    head_rows=st.integers(1, 64),
    carry=st.integers(0, 8),
)


@st.composite
def id_requests(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Sequences that fork from one another at random places, cut anywhere into prefix and target, some twice."""
    sequences: list[list[int]] = [draw(st.lists(tokens, min_size=1, max_size=40))]
    for _ in range(draw(st.integers(0, 10))):
        parent = draw(st.sampled_from(sequences))
        kept = parent[: draw(st.integers(0, len(parent)))]
        sequences.append(kept + draw(st.lists(tokens, min_size=0 if kept else 1, max_size=24)))
    requests = []
    for ids in draw(st.lists(st.sampled_from(sequences), min_size=1, max_size=14)):
        cut = draw(st.integers(0, len(ids)))
        requests.append((ids[:cut], ids[cut:]))
    return requests


def plain_scores(model: LanguageModel, ids: list[int], first: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities in float64 and logits for ``ids[first:]`` from one forward of this sequence alone."""
    logits = forward_logits(model.module, np.array(ids[:-1])).double()
    places = torch.arange(first - 1, len(ids) - 1)
    logprobs = torch.log_softmax(logits, -1)[places, torch.tensor(ids[first:])]
    return logprobs.numpy(), logits[places].numpy()


def assert_scores(model: LanguageModel, ids: list[int], start: int, score: Any) -> None:
    first = max(start, 1)
    assert score.token_ids.tolist() == ids[first:]
    if not ids[first:]:
        assert len(score) == 0 and score.greedy
        return
    logprobs, logits = plain_scores(model, ids, first)
    np.testing.assert_allclose(score.logprobs, logprobs, atol=1e-4)
    own = logits[np.arange(len(logprobs)), ids[first:]][:, None]
    # Rounding may exchange logits that are equal but for it.
    assert ((logits > own + 1e-4).sum(1) <= score.ranks).all() and (score.ranks <= (logits > own - 1e-4).sum(1)).all()
    assert score.greedy == (not score.ranks.any())


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
@TORCH
@given(requests=id_requests(), limits=some_limits, packed=st.booleans())
def test_every_architecture_equals_its_plain_forward(
    architecture: str, requests: list[tuple[list[int], list[int]]], limits: Limits, packed: bool
) -> None:
    model = small_model(architecture)
    model.packed_weights = packed
    model._engine._runner.limits = limits
    for (prefix, target), score in zip(requests, model.loglikelihood(requests), strict=True):
        assert_scores(model, prefix + target, len(prefix), score)


_PLAIN = ["The keeper", " closed", " the door", "bud", "get", "budget", "x"]
words = st.sampled_from([*_PLAIN, ".", ".\n\n", " ", "  ", "\n", " naïve", "é", "😀", "東", "京"])
texts = st.lists(words, max_size=6).map("".join)


def byte_split(ids: list[int], boundary: int) -> tuple[int, bool]:
    """The first token that covers a byte at or after ``boundary``, counted by the bytes that each token stands for."""
    pieces = small_tokenizer().convert_ids_to_tokens(ids)
    ends = np.cumsum([len(piece) for piece in pieces]) if ids else np.zeros(0, dtype=int)
    first = int(np.searchsorted(ends, boundary, side="right"))
    return first, first < len(ids) and (int(ends[first - 1]) if first else 0) < boundary


@settings(TORCH, max_examples=80)
@given(requests=st.lists(st.tuples(texts, texts), min_size=1, max_size=8), bos=st.sampled_from(["default", "none", 5]))
@pytest.mark.parametrize("own_bos", [False, True])
def test_text_is_split_where_the_target_begins(own_bos: bool, requests: list[tuple[str, str]], bos: Any) -> None:
    model = small_model("llama", own_bos)
    head = {"default": [0] if own_bos else [], "none": [], 5: [5]}[bos]
    for (prefix, target), score in zip(requests, model.loglikelihood(requests, bos=bos), strict=True):
        ids = model.tokenizer(prefix + target, add_special_tokens=False)["input_ids"]
        first, merged = byte_split(ids, len(prefix.rstrip().encode()))
        assert score.boundary_merged == merged
        assert_scores(model, head + ids, len(head) + first, score)


@TORCH
@given(requests=id_requests(), data=st.data())
def test_a_score_does_not_depend_on_its_company(
    requests: list[tuple[list[int], list[int]]], data: st.DataObject
) -> None:
    model = small_model("qwen3")
    model._engine._runner.limits = data.draw(some_limits)
    together = model.loglikelihood(requests, stats=True)
    order = data.draw(st.permutations(range(len(requests))))
    for i, again in zip(order, model.loglikelihood([requests[i] for i in order], stats=True), strict=True):
        (alone,) = model.loglikelihood([requests[i]], stats=True)
        for other in (again, alone):
            for name in ("logprobs", "entropy", "mean_logprob", "std_logprob"):
                np.testing.assert_allclose(getattr(other, name), getattr(together[i], name), atol=1e-4)
