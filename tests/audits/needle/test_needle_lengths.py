"""Exact lengths and depths for every kind of tokenizer, checked by tokenising the finished prompt once more."""

from __future__ import annotations

from functools import cache
from pydoc_data import topics
from typing import Any, cast

import numpy as np
import pytest

from lm_audit.audits.needle import Haystack, NeedleTask, build_sample
from lm_audit.audits.needle.haystack.sources import embedded_essay
from lm_audit.audits.needle.samples.building import TooShort
from lm_audit.audits.needle.samples.prompt_tokens import is_additive, measure_whole
from lm_audit.audits.needle.samples.sample import Sample, hash_ids
from lm_audit.errors import DataError, UsageError
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.tokenizer import Tokenizer
from tests.audits.needle.text.needle_tokenizers import CHINESE, KINDS, small_tokenizer
from tests.shared_data import golden_file, shared

ESSAY = "essay"
POEM = CHINESE * 30


@cache
def tokenised(source: str, tokenizer: Tokenizer) -> Haystack:
    """A haystack that no test changes, read once for each tokenizer."""
    return Haystack(source, tokenizer)


def fed_ids(sample: Sample, tokenizer: Tokenizer) -> list[int]:
    """The ids that a model is fed, by the tokenizer itself."""
    return tokenizer(sample.prompt, add_special_tokens=sample.special, verbose=False).input_ids


SOURCES = {"essay": ESSAY, "noise": "noise", "chinese": POEM}


@pytest.mark.parametrize(
    ("source", "kind", "chat"),
    [
        pytest.param(
            source, kind, chat, id=f"{name}-{kind}-{'chat' if chat else 'base'}",
            marks=[] if chat == bool((i + j) % 2) else [pytest.mark.slow],
        )
        for i, (name, source) in enumerate(SOURCES.items())
        for j, kind in enumerate(KINDS)
        for chat in (False, True)
    ],
)  # fmt: skip
def test_prompt_fills_its_length_within_two_tokens(kind: str, chat: bool, source: str) -> None:
    tokenizer = small_tokenizer(kind, chat=chat)
    haystack = tokenised(source, tokenizer)
    for length in (400, 1000, 3001):
        for depth in (0, 33, 100):
            sample = build_sample(
                haystack, length=length, depth=depth, needle=NeedleTask(), seed=3, tokens_to_generate=32
            )
            ids = fed_ids(sample, tokenizer)
            assert length - 2 <= len(ids) + 32 <= length
            assert sample.actual_length == len(ids) + 32
            assert sample.ids_sha256 == hash_ids(np.array(ids))
            assert sample.prompt.count(sample.needles[0]) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_needle_tokens_hold_the_needle(kind: str) -> None:
    tokenizer = small_tokenizer(kind)
    sample = build_sample(tokenised(ESSAY, tokenizer), length=900, depth=40, needle=NeedleTask(), seed=5)
    (begin, end) = sample.needle_spans[0]
    assert begin == sample.needle_token_position
    assert sample.needles[0] in tokenizer.decode(fed_ids(sample, tokenizer)[begin:end])


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_boundary_is_nearer_to_the_depth(kind: str) -> None:
    """Every word of the haystack is tried as the needle's place, the prompt's own tokens are counted."""
    tokenizer = small_tokenizer(kind)
    haystack = tokenised(ESSAY, tokenizer)
    for boundary, slack in (("word", 100 * 8 / 800), ("sentence", None)):
        sample = build_sample(haystack, length=1000, depth=37, needle=NeedleTask(), seed=1, boundary=boundary)
        error = abs(sample.actual_position - 37)
        if slack is not None:
            assert error <= slack
        start, units = sample.metadata["window_start"], sample.metadata["window_units"]
        places = haystack.boundaries(start, units) if boundary == "sentence" else np.arange(units + 1)
        counts = haystack.tokens_before(places + start) - haystack.tokens_before(start)
        nearest = np.abs(100 * counts / counts[-1] - 37).min()
        assert error <= nearest + 100 * 2 / sample.haystack_tokens


def test_depths_0_and_100_are_the_ends_of_the_haystack() -> None:
    haystack = tokenised(ESSAY, small_tokenizer("byte-level"))
    first, last = (build_sample(haystack, length=800, depth=d, needle=NeedleTask(), seed=2) for d in (0, 100))
    assert first.actual_position == 0.0
    assert last.actual_position == 100.0
    assert first.input.split("\n")[1].startswith(first.needles[0])
    assert last.input.split("\nWhat is")[0].endswith(last.needles[0])


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("kind", KINDS)
def test_reading_seams_gives_the_ids_of_the_whole_prompt(kind: str, seed: int) -> None:
    haystack = tokenised(ESSAY, small_tokenizer(kind))
    assert is_additive(haystack)
    for depth in (0, 50, 100):
        arguments: dict[str, Any] = {"length": 20_000, "depth": depth, "needle": NeedleTask(num_k=3), "seed": seed}
        by_seams = build_sample(haystack, **arguments)
        whole = build_sample(haystack, verify="whole", **arguments)
        assert by_seams == whole


def test_the_essay_is_read_by_its_seams_whatever_python_it_comes_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on its text has borders of tables that are longer than any word."""
    border = "   +" + "-" * 105 + "+\n"
    table = f"A table:\n\n{border}   | {'one':50s} | {'two':50s} |\n{border}" * 12
    some = {name: topics.topics[name] for name in sorted(topics.topics)[:12]} | {"tables": table}
    monkeypatch.setattr(topics, "topics", some)

    essay = embedded_essay().text

    assert border.strip() not in essay and essay.count("| one") == 12
    assert is_additive(Haystack(ESSAY, small_tokenizer("byte-level")))


def test_seams_across_repeated_copies_of_a_short_text() -> None:
    haystack = Haystack("noise", small_tokenizer("byte-level"))
    arguments: dict[str, Any] = {"length": 40_000, "depth": 60, "needle": NeedleTask(), "seed": 1}
    assert haystack.n_tokens < 40_000 * 0.6
    assert is_additive(haystack)
    assert build_sample(haystack, **arguments) == build_sample(haystack, verify="whole", **arguments)


def test_seams_are_not_trusted_where_words_change_with_their_neighbours() -> None:
    """Chinese characters merge with whatever stands beside them."""
    haystack = Haystack(POEM, small_tokenizer("sentencepiece"))
    assert not is_additive(haystack)
    sample = build_sample(haystack, length=17_000, depth=50, needle=NeedleTask(), seed=1)
    ids = fed_ids(sample, small_tokenizer("sentencepiece"))
    assert 16_998 <= len(ids) + 128 <= 17_000


class WithoutOffsets:
    """A tokenizer written in Python, as far as anyone can see: it tells no offsets."""

    is_fast = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(
        self, text: str, *, add_special_tokens: bool, return_offsets_mapping: bool = False, **rest: Any
    ) -> Any:
        assert not return_offsets_mapping
        return self._tokenizer(text, add_special_tokens=add_special_tokens, **rest)


def test_tokenizer_without_offsets_fits_too() -> None:
    # Of the protocol it has what a haystack asks of a slow tokenizer.
    slow = cast(Tokenizer, WithoutOffsets(small_tokenizer("sentencepiece")))
    haystack = Haystack(ESSAY, slow)
    fast = tokenised(ESSAY, small_tokenizer("sentencepiece"))
    arguments: dict[str, Any] = {
        "length": 900,
        "depth": 50,
        "needle": NeedleTask(),
        "seed": 4,
        "tokens_to_generate": 16,
    }
    sample, other = build_sample(haystack, **arguments), build_sample(fast, **arguments)
    assert 898 <= sample.actual_length <= 900
    assert abs(sample.actual_position - other.actual_position) < 5


@pytest.mark.parametrize("depth", [0.0, 50.0, 100.0])
def test_every_length_from_the_smallest_on_can_be_made(depth: float) -> None:
    """Of a tokenizer of bytes, where no word of the haystack has room yet, and part of one has to do."""
    haystack = tokenised(ESSAY, byte_tokenizer(512))
    given: dict[str, Any] = {"depth": depth, "needle": NeedleTask(), "seed": 4, "tokens_to_generate": 16}
    made = 0
    for length in range(372, 402):
        try:
            sample = build_sample(haystack, length=length, **given)
        except TooShort as error:  # needles are drawn anew for each length, some of a longer word
            assert error.smallest > length
            continue
        made += 1
        assert length - 2 <= sample.actual_length <= length
        assert all(needle in sample.input for needle in sample.needles)
    assert made >= 12


def test_several_needles_stand_each_at_its_own_depth() -> None:
    haystack = tokenised(ESSAY, small_tokenizer("byte-level"))
    depths = [80.0, 0.0, 33.0, 100.0]
    sample = build_sample(haystack, length=6000, depth=depths, needle=NeedleTask(num_k=2, num_v=2), seed=9)
    assert sample.target_positions == tuple(depths)
    assert sample.target_position == 80.0
    for target, actual in zip(depths, sample.actual_positions, strict=True):
        assert abs(target - actual) < 1.0
    at = [sample.input.index(needle) for needle in sample.needles]
    assert sorted(range(4), key=lambda i: at[i]) == sorted(range(4), key=lambda i: depths[i])
    assert len(set(sample.outputs)) == 2


def test_golden_word_exact_fits(smollm2_tokenizer: Tokenizer) -> None:
    import json

    fits = json.loads(golden_file("needle/golden_fit.dev.json").read_text(encoding="utf-8"))["exact_fit"]
    text = shared("data/haystack/en_austen_northanger_abbey.txt").read_text(encoding="utf-8")
    haystack = Haystack(text, smollm2_tokenizer)
    assert len(fits) >= 50
    for fit in fits:
        sample = build_sample(
            haystack,
            length=fit["target"],
            depth=100.0 * fit["fraction"],
            needle="One of the special magic numbers for red-fox is: 1234567.",
            seed=0,
            template=fit["wrap"],
            tokens_to_generate=fit["tokens_to_generate"],
            windows="start",
            boundary="word",
        )
        assert abs(sample.actual_length - fit["total"]) <= 1, fit
        # The needle's place changes the tokens at its seams, so that one word more or less may fit.
        assert abs(sample.metadata["window_units"] - fit["max_words"]) <= 1, fit
        if fit["fraction"] in (0, 1):  # the same place by either rule
            assert sample.metadata["window_units"] == fit["max_words"], fit
            assert sample.actual_length == fit["total"], fit


def test_length_too_short_names_the_smallest_that_is_feasible() -> None:
    haystack = tokenised(ESSAY, small_tokenizer("tiktoken"))
    with pytest.raises(DataError, match="smallest feasible length is") as caught:
        build_sample(haystack, length=150, depth=50, needle=NeedleTask(), seed=1)
    smallest = int(str(caught.value).rsplit(" ", 1)[1])
    sample = build_sample(haystack, length=smallest + 4, depth=50, needle=NeedleTask(), seed=1)
    assert sample.actual_length <= smallest + 4


def test_needle_longer_than_the_length_is_an_error() -> None:
    haystack = tokenised(ESSAY, small_tokenizer("tiktoken"))
    with pytest.raises(DataError, match="too short"):
        build_sample(haystack, length=400, depth=50, needle="A walrus said so. " * 300, seed=1)


def test_needle_that_the_haystack_contains_is_an_error() -> None:
    haystack = Haystack("The cat sat. The dog ran. " * 50, small_tokenizer("tiktoken"))
    with pytest.raises(DataError, match="occurs in the haystack"):
        build_sample(haystack, length=400, depth=50, needle="the dog ran.", seed=1)


def test_chat_without_a_template_is_an_error() -> None:
    haystack = tokenised(ESSAY, small_tokenizer("byte-level"))
    with pytest.raises(UsageError, match="has no chat template"):
        build_sample(haystack, length=800, depth=50, needle=NeedleTask(), seed=1, template="chat")


def test_needle_of_own_wording() -> None:
    haystack = tokenised(ESSAY, small_tokenizer("byte-level"))
    sample = build_sample(
        haystack,
        length=600,
        depth=50,
        needle="The lighthouse keeper is called Ottoline.",
        seed=1,
        question="Who keeps the lighthouse?",
        answers=["Ottoline"],
    )
    assert sample.outputs == ("Ottoline",)
    assert sample.input.endswith("Who keeps the lighthouse?")
    assert 598 <= sample.actual_length <= 600


def test_special_token_in_the_haystack_is_an_error() -> None:
    with pytest.raises(DataError, match="special token"):
        Haystack("A line with </s> in it.", small_tokenizer("byte-level"))


def test_line_breaks_are_replaced_before_counting() -> None:
    tokenizer = small_tokenizer("byte-level")
    haystack = Haystack("noise", tokenizer, lines=False)
    sample = build_sample(haystack, length=700, depth=50, needle=NeedleTask(), seed=1, one_line=True)
    assert "\n" not in sample.prompt
    assert len(fed_ids(sample, tokenizer)) + 128 == sample.actual_length


def test_measuring_counts_the_haystack_without_its_needles() -> None:
    tokenizer = small_tokenizer("byte-level")
    haystack = tokenised(ESSAY, tokenizer)
    sample = build_sample(haystack, length=2000, depth=[10, 90], needle=NeedleTask(num_k=2), seed=1)
    from lm_audit.audits.needle.haystack.windows import Piece

    text = sample.input.split("\n", 1)[1].rsplit("\nWhat", 1)[0]
    whole = measure_whole(haystack.encoder, "", [Piece(text)], "", special=False)
    needle_tokens = sum(end - begin for begin, end in sample.needle_spans)
    assert abs(len(whole) - needle_tokens - sample.haystack_tokens) <= 1
