"""Bad input: defined results or errors that say what was wrong, before any forward pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from lm_audit.audits.faithfulness import (
    Explainer,
    attribute,
    deletion_curve,
    encode_passage,
    faithfulness_scores,
    method_scores,
)
from lm_audit.audits.faithfulness.deletion.metrics import rank_correlation
from lm_audit.audits.faithfulness.passage.samples import Sample, load_words, split_thinking
from lm_audit.audits.faithfulness.passage.user_samples import read_samples
from lm_audit.audits.faithfulness.study import prepare, prepare_all
from lm_audit.errors import DataError, UsageError
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.tokenizer import Tokenizer
from tests.audits.faithfulness.small_decoders import small_decoder


@pytest.fixture(scope="module")
def small() -> LanguageModel:
    return LanguageModel(small_decoder("llama", vocab_size=259), byte_tokenizer(128), name="small")


@pytest.mark.parametrize("generation", ["", "<eos>", [], [2]])
def test_a_generation_of_no_tokens(small: LanguageModel, generation: str | list[int]) -> None:
    with pytest.raises(UsageError, match="generation has no tokens"):
        attribute(small, "abc", generation, "ifr")


@pytest.mark.parametrize("prompt", ["", []])
def test_a_prompt_of_no_tokens(small: LanguageModel, prompt: str) -> None:
    with pytest.raises(UsageError, match="prompt has no tokens"):
        attribute(small, prompt, "abc", "ifr")


@pytest.mark.parametrize("blank", [" ", "\n\t ", "\u00a0", "\u200b\u2060", "\u3164"])
def test_a_prompt_or_generation_of_white_space(small: LanguageModel, blank: str) -> None:
    with pytest.raises(UsageError, match="the prompt is blank"):
        attribute(small, blank, "abc", "ifr")
    with pytest.raises(UsageError, match="the generation is blank"):
        attribute(small, "abc", blank, "ifr")


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ((3, 1), "reversed: (3, 1)"),
        ((0, 9), "(0, 9), but the generation has the tokens 0 to 3"),
        ((-1, 1), "(-1, 1), but the generation"),
        (4, "a span is a pair"),
        (("a", "b"), "a span is a pair"),
    ],
)
@pytest.mark.parametrize("name", ["sink", "thinking"])
def test_spans(small: LanguageModel, span: tuple[int, int] | int | tuple[str, str], message: str, name: str) -> None:
    given: dict[str, Any] = {name: span}
    with pytest.raises(UsageError) as error:
        attribute(small, "abc", "xyz", "ifr", **given)
    assert message in str(error.value) and name in str(error.value)


def test_text_that_does_not_round_trip(small: LanguageModel) -> None:
    with pytest.raises(DataError, match="no UTF-8 form: character 1"):
        attribute(small, "a\ud800b", "xyz", "ifr")


def test_a_tokenizer_that_normalises_is_named() -> None:
    class Lower:
        is_fast, eos_token, eos_token_id = False, None, None

        def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
            return {"input_ids": [ord(letter) for letter in text.lower()]}

        def decode(self, ids: list[int], **_: object) -> str:
            return "".join(map(chr, ids))

    with pytest.raises(DataError, match=r"cannot round-trip the prompt: at character 2 it gives 'c' where .* 'C'"):
        encode_passage(cast(Tokenizer, Lower()), "abC", "x")


def test_unknown_method_suggests_the_nearest(small: LanguageModel) -> None:
    with pytest.raises(UsageError, match="did you mean 'flashtrace'"):
        attribute(small, "abc", "xyz", "flash_trace")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "prob"}, "objective must be 'logit' or 'logprob', got 'prob'"),
        ({"reduce": "max"}, "reduce must be .*got 'max'"),
        ({"score_mode": "x"}, "score_mode"),
        ({"negatives": "keep"}, "negatives"),
        ({"hops": -1}, "hops must be .*got -1"),
        ({"points": 0}, "points must be .*got 0"),
        ({"weights": [1.0], "sink": (0, 1)}, "1 weights for a sink of 2"),
        ({"weights": [float("nan")], "sink": (0, 0)}, "a weight must be a number"),
        ({"hops": 7}, "hops=7 does nothing in ifr_span.*belongs to ft_ifr, flashtrace, ft_attnlrp"),
        ({"hops": True}, "hops must be .*a whole number, got True"),
        ({"hops": 10**20}, "hops must be .*at most 100, a whole number, got 1000"),
        ({"points": 5}, "points=5 does nothing in ifr_span"),
        ({"variant": "output_only"}, "variant='output_only' does nothing in ifr_span"),
        ({"baseline": "pad"}, "baseline='pad' does nothing"),
        ({"eps": float("inf")}, "eps must be a number above 0"),
        ({"eps": 0}, "eps must be a number above 0"),
        ({"threshold": float("nan")}, "threshold must be a number at least 0"),
    ],
)
def test_options(small: LanguageModel, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        attribute(small, "abc", "xyz", "ifr_span", **options)


def test_flashtrace_refuses_the_end_of_text_token(small: LanguageModel) -> None:
    with pytest.raises(UsageError, match="end-of-text"):
        attribute(small, "abc", "xyz", "flashtrace", sink=(0, 3))


def test_unknown_variant_and_baseline(small: LanguageModel) -> None:
    with pytest.raises(UsageError, match="variant"):
        attribute(small, "abc", "xyz", "ft_ifr", variant="other")
    with pytest.raises(UsageError, match="variant"):
        attribute(small, "abc", "xyz", "ablation", variant="words")
    with pytest.raises(UsageError, match="baseline is 'zero'"):
        deletion_curve(small, "abc", "xyz", [1, 2, 3], baseline="zero")


def test_attributions_of_the_wrong_size_or_with_nan(small: LanguageModel) -> None:
    with pytest.raises(UsageError, match="has 2 weights; this prompt has 3 token features"):
        deletion_curve(small, "abc", "xyz", [1, 2])
    with pytest.raises(DataError, match="every feature needs a finite weight"):
        deletion_curve(small, "abc", "xyz", [1, np.nan, 2])


def test_all_zero_attribution_is_defined(small: LanguageModel) -> None:
    curve = deletion_curve(small, "abc", "xyz", [0, 0, 0])
    assert curve.flat and curve.order == (0, 1, 2)
    np.testing.assert_allclose(curve.density, np.linspace(1, 0, 4))
    assert all(np.isfinite(value) for value in (curve.rise, curve.mas, curve.rise_ap))


def test_a_score_that_does_not_fall_is_degenerate() -> None:
    equal = faithfulness_scores([-4.0, -6.0, -4.0], [0.7, 0.3], 2)
    rising = faithfulness_scores([-4.0, -3.0, -2.0], [0.7, 0.3], 2)
    falling = faithfulness_scores([-4.0, -5.0, -6.0], [0.7, 0.3], 2)
    assert equal.degenerate and rising.degenerate and not falling.degenerate
    assert rising.rise == 0.0
    empty = faithfulness_scores([-4.0], np.zeros((1, 0)), 20)
    assert empty.degenerate and (empty.rise, empty.mas, empty.rise_ap) == (0.0, 0.0, 0.0)


def test_scores_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="2 scores for 3 deletion steps"):
        faithfulness_scores([-1.0, -2.0], [1, 2, 3], 3)
    with pytest.raises(DataError, match="finite log-likelihoods"):
        faithfulness_scores([-1.0, float("-inf")], [1], 1)


def test_constant_weights_have_no_rank_correlation() -> None:
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None
    assert rank_correlation([1], [2]) is None
    assert rank_correlation([3, 2, 1], [1, 2, 3]) == pytest.approx(-1.0)


def _write(tmp_path: Path, *records: object) -> Path:
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records))
    return path


def test_own_samples(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        {
            "prompt": "The box is red. What colour?",
            "generation": "<think>red</think>\nred",
            "evidence_spans": [[0, 15]],
        },
        {"id": "two", "prompt": "ab cd", "generation": "x yy z", "output_span": "yy", "evidence_spans": ["cd"]},
        {"prompt": "only a prompt"},
    )
    first, second, third = read_samples(path)
    assert first == Sample("line-1", "The box is red. What colour?", "<think>red</think>\nred", ((0, 15),))
    assert (second.name, second.output, second.evidence) == ("two", (2, 4), ((3, 5),))
    assert third.generation is None


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        ("{", None, "not JSON"),
        ([1], None, "an object is expected"),
        ({"promt": "a"}, None, "unknown key 'promt'"),
        ({}, "prompt", "text that is not empty"),
        ({"prompt": ""}, "prompt", "text that is not empty"),
        ({"prompt": "a", "output_span": [0, 1]}, "output_span", "needs a 'generation'"),
        ({"prompt": "a", "generation": "bc", "output_span": [2, 1]}, "output_span", r"\[2, 1\) in a text of 2"),
        ({"prompt": "a", "generation": "bc", "thinking_span": [0, 9]}, "thinking_span", "in a text of 2"),
        ({"prompt": "aXbX", "evidence_spans": ["X"]}, "evidence_spans", "occurs 2 times"),
        ({"prompt": "a", "evidence_spans": [[0]]}, "evidence_spans", "a span is"),
        ({"prompt": "a", "evidence_spans": 3}, "evidence_spans", "list of spans"),
        ({"prompt": "a", "evidence_spans": 0}, "evidence_spans", "list of spans"),
        ({"prompt": "aaa", "evidence_spans": ["aa"]}, "evidence_spans", "occurs 2 times"),
        ({"prompt": "abcd", "evidence_spans": [[0, 3], "cd"]}, "evidence_spans", r"\[0, 3\) and \[2, 4\) overlap"),
        ({"prompt": "abcd", "evidence_spans": [[0, 2], [0, 2]]}, "evidence_spans", "overlap"),
        (
            {"prompt": "a", "generation": "bcd", "thinking_span": [0, 2], "output_span": [1, 3]},
            "output_span and thinking_span",
            "overlap",
        ),
        ({"prompt": "a", "generation": "<think>b</think>\n"}, "generation", "a thought and no answer"),
        ({"prompt": "a", "generation": "[THINK]b"}, "generation", "a thought and no answer"),
        ({"prompt": "a", "id": None}, "id", "text or a whole number"),
        ({"prompt": "a", "id": ["x"]}, "id", "text or a whole number"),
    ],
)
def test_own_samples_that_cannot_be_used(tmp_path: Path, record: object, field: str | None, message: str) -> None:
    path = _write(tmp_path, {"prompt": "fine"}, record)
    with pytest.raises(DataError, match=message) as error:
        read_samples(path)
    assert error.value.row == 2 and error.value.file == str(path) and error.value.field == field


def test_empty_and_missing_files_and_repeated_ids(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no samples"):
        read_samples(_write(tmp_path, ""))
    with pytest.raises(DataError, match="no such file"):
        read_samples(tmp_path / "absent.jsonl")
    with pytest.raises(DataError, match="already that of row 1"):
        read_samples(_write(tmp_path, {"id": "a", "prompt": "x"}, {"id": "a", "prompt": "y"}))
    with pytest.raises(DataError, match="row 3: is the same sample as row 1"):
        same, other = {"prompt": "x", "generation": "z"}, {"prompt": "x", "generation": "y"}
        read_samples(_write(tmp_path, same, other, {"id": "b", **same}))
    broken = tmp_path / "words.toml"
    broken.write_text("[needle]\nfillers = []\n[hops]\n")
    with pytest.raises(DataError, match=r"\[needle\]: the key 'owners' is missing"):
        load_words(broken)


def test_a_sample_whose_span_holds_no_token(small: LanguageModel) -> None:
    with pytest.raises(DataError, match="holds no token"):
        prepare(small, Sample("s", "abc", "xyz", output=(3, 3)))


@pytest.mark.parametrize(
    ("text", "thinking", "output"),
    [
        ("<think>a b</think>\nc d", (0, 19), (19, 22)),
        ("a b</think>c", (0, 11), (11, 12)),
        ("plain answer", None, (0, 12)),
        ("<think>never closed", None, (0, 19)),
        ("all thinking</think>\n", None, (0, 21)),
        ("<|begin_of_thought|>x<|end_of_thought|> y", (0, 40), (40, 41)),
        ("[THINK]x[/THINK]y", (0, 16), (16, 17)),
        ("<Thought>x</Thought ><Output>y</Output>", (0, 29), (29, 30)),
        ("<think>x</think>y `</think>` z", (0, 16), (16, 30)),
        ("<think>x</think>y:\n```\n<think>1</think>\n```", (0, 16), (16, 43)),
        ("Here is my thought process:\nx\nHere is my response:\ny", (0, 51), (51, 52)),
    ],
)
def test_thinking_is_split_by_its_tags(text: str, thinking: tuple[int, int] | None, output: tuple[int, int]) -> None:
    assert split_thinking(text) == (thinking, output)


def test_a_generation_that_ends_inside_its_thought_is_no_answer(small: LanguageModel) -> None:
    for text in ("<think>abc", "[THINK]abc", "abc</think>\n"):
        with pytest.raises(DataError, match="ends inside its thought"):
            prepare(small, Sample("s", "abc", text))


def test_samples_without_an_answer_are_left_out_and_told(small: LanguageModel) -> None:
    samples = [Sample("one", "abc", "bcd"), Sample("two", "abc", "<think>abc"), Sample("three", "abcd", "ab")]
    studies, notes = prepare_all(small, samples)
    assert [study.sample.name for study in studies] == ["one", "three"]
    assert [note.split(":")[0] for note in notes] == ["Warning"] and "1 of 3 samples" in notes[0] and "two" in notes[0]
    assert notes[0] in method_scores(small, samples, method="ifr", steps=2).notes
    with pytest.raises(DataError, match="sample two: the generation ends inside its thought"):
        prepare_all(small, samples[1:2])


def test_the_template_s_own_tags_come_first() -> None:
    text = "a</think>b</reasoning>c"
    assert split_thinking(text, "... </reasoning> ...")[1] == (22, 23)
    assert split_thinking(text, "... </think> ...")[1] == (9, 23)


def test_the_model_answers_where_no_generation_is_given(small: LanguageModel) -> None:
    study = prepare(small, Sample("s", "abc"), max_new_tokens=6)
    assert len(study.explainer.passage.generation_ids) >= 2
    assert isinstance(study.explainer, Explainer)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"prompt": "ab cd", "id": " "}], "is ' '; text or a whole number"),
        ([{"prompt": "ab cd", "id": "\u200b"}], "text or a whole number"),
        ([{"prompt": "ab cd", "evidence_spans": [[2, 3]]}], "holds white space alone"),
        ([{"prompt": "ab", "generation": "x  y", "output_span": [1, 3]}], "holds white space alone"),
        ([{"prompt": "a", "id": "\u00e9"}, {"prompt": "b", "id": "e\u0301"}], "or looks like it"),
        ([{"prompt": "a", "id": "x"}, {"prompt": "b", "id": "x\u200d"}], "or looks like it"),
    ],
)
def test_own_samples_that_cannot_be_told(tmp_path: Path, rows: list[dict[str, Any]], says: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as refused:
        read_samples(path)
    assert says in str(refused.value) and str(path) in str(refused.value)


def test_own_samples_near_them_are_read(tmp_path: Path) -> None:
    rows = [
        {"prompt": "ab cd", "id": "x", "evidence_spans": [[1, 4]]},
        {"prompt": "b", "id": "X", "generation": " y", "output_span": [0, 2]},
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [sample.name for sample in read_samples(path)] == ["x", "X"]
