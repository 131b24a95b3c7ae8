"""Passages: spans by offsets, token texts that join, chat templates, and defects of the reference not copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from lm_audit.audits.faithfulness import Explainer, encode_passage
from lm_audit.audits.faithfulness.passage.sentences import sentence_bounds, sentence_units
from lm_audit.audits.faithfulness.passage.spans import tokens_in_characters
from lm_audit.errors import DataError, UsageError
from lm_audit.models import load_tokenizer
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.tokenizer import Tokenizer
from tests.audits.faithfulness.small_decoders import small_decoder


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer("smollm2")


@pytest.mark.parametrize(
    "prompt", ["1994 was warm.", "\n\nStart", " lead", "東京は晴れ。", "ends in newline\n", "a\u00a0b"]
)
@pytest.mark.parametrize("chat", [False, True])
def test_user_tokens_join_to_the_user_text(tokenizer: Tokenizer, prompt: str, chat: bool) -> None:
    """Also where a token merges with the template, where one character takes several tokens, and leading spaces."""
    passage = encode_passage(tokenizer, prompt, "Yes, 東京.", chat=chat)
    assert "".join(passage.user_tokens) == passage.user_text == (prompt if not chat else passage.user_text)
    assert "".join(passage.generation_tokens[:-1]) == "Yes, 東京."
    assert passage.user_text.strip() == prompt.strip()


def test_a_character_of_several_tokens_is_shown_once() -> None:
    passage = encode_passage(byte_tokenizer(64), "é東", "東")
    assert len(passage.prompt_ids) == 5
    assert "".join(passage.user_tokens) == "é東"
    assert sum(bool(token) for token in passage.user_tokens) == 2


def test_a_user_text_that_also_stands_in_the_template_is_not_mistaken(tokenizer: Tokenizer) -> None:
    passage = encode_passage(tokenizer, "user", "ok", chat=True)
    formatted = tokenizer.apply_chat_template(
        [{"role": "user", "content": "user"}], tokenize=False, add_generation_prompt=True
    )
    assert isinstance(formatted, str) and formatted.count("user") > 1
    before = tokenizer.decode(passage.prompt_ids[: passage.user[0]])
    assert before.endswith("<|im_start|>user\n")


def test_messages_explain_the_last_user_turn(tokenizer: Tokenizer) -> None:
    turns = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "reply"},
        {"role": "user", "content": "second one"},
    ]
    assert encode_passage(tokenizer, turns, "ok").user_text == "second one"
    with pytest.raises(UsageError, match="no turn with the role 'user'"):
        encode_passage(tokenizer, [{"role": "system", "content": "x"}], "ok")


def test_a_template_that_rewrites_the_text_is_an_error(tokenizer: Tokenizer) -> None:
    class Shouting:
        chat_template = "x"

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

        def apply_chat_template(self, turns: list[dict[str, str]], **_: bool) -> str:
            content = turns[0]["content"]
            shouted = content.upper() if content == "abc" else content
            return f"<{shouted}>"

    with pytest.raises(DataError, match="rewrites the user's text"):
        encode_passage(cast(Tokenizer, Shouting()), "abc", "ok", chat=True)


def test_one_trailing_end_of_text_is_stripped_and_its_id_appended(tokenizer: Tokenizer) -> None:
    eos = tokenizer.eos_token
    plain, marked = (encode_passage(tokenizer, "a", text) for text in ("b c", f"b c{eos}"))
    assert plain == marked
    assert plain.generation_ids[-1] == tokenizer.eos_token_id and plain.generation_tokens[-1] == eos


def test_ids_are_taken_as_they_are(tokenizer: Tokenizer) -> None:
    ids = tokenizer("The grass is green.", add_special_tokens=False).input_ids
    passage = encode_passage(tokenizer, ids, tokenizer(" Yes", add_special_tokens=False).input_ids)
    assert list(passage.prompt_ids) == ids and "".join(passage.user_tokens) == "The grass is green."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", " Two!", " Three?"]),
        ("Dr. Smith paid 3.50 to J. Doe.", ["Dr. Smith paid 3.50 to J. Doe."]),
        ('He said "Stop." Then left.', ['He said "Stop."', " Then left."]),
        ("First.\nSecond", ["First.", "\n", "Second"]),
        ("first line\nSecond", ["first line\n", "Second"]),
        ("first line\nsecond", ["first line\nsecond"]),
        ("東京です。大阪です。", ["東京です。", "大阪です。"]),
        ("", []),
        ("...", ["..."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[first:last] for first, last in sentence_bounds(text)] == expected


def test_sentence_masks_do_not_drift_where_a_token_straddles() -> None:
    """Tokens go by their own characters, not by adding up lengths."""
    units = sentence_units("Aa. Bb. Cc.", [(0, 2), (2, 6), (6, 7), (7, 11)])
    assert units.tokens == ((0, 1), (2,), (3,))


def test_gold_tokens_by_characters_whatever_comes_before(tokenizer: Tokenizer) -> None:
    """The reference prefixes a space and shifts by one for texts that begin with a digit."""
    passage = encode_passage(tokenizer, "1994 was warm. It rained.", "ok")
    gold = tokens_in_characters(passage.user_offsets, 0, 4)
    assert "".join(passage.user_tokens[index] for index in gold) == "1994"


def test_the_scored_prompt_is_the_attributed_prompt() -> None:
    """The reference applies raw user positions to templated ids; here one passage serves both."""
    model = LanguageModel(small_decoder("llama", vocab_size=259), byte_tokenizer(128), name="small")
    explainer = Explainer(model, "abcde", "xy", chat=True)
    passage = explainer.passage
    assert passage.user[0] > 0
    perturbations = explainer.perturbations()
    asked: list[tuple[list[int], list[int]]] = []
    original = model.loglikelihood

    def spy(requests: Sequence[Any], **options: Any) -> list[TokenScores]:
        asked.extend(requests)
        return original(requests, **options)

    model.loglikelihood = spy  # type: ignore[method-assign]
    perturbations.totals([list(passage.user)])
    changed = [i for i, (a, b) in enumerate(zip(asked[0][0], passage.prompt_ids, strict=True)) if a != b]
    assert changed == list(passage.user)
