"""Log-probabilities of a prompt: exactly those of the model, or none at all."""

from __future__ import annotations

import math
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import LanguageModel, load_model
from lm_audit.models.capabilities import Capability
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.models.endpoint.tokens.token_strings import _letters
from tests.endpoint.servers.made_server import Body, made_server, words
from tests.endpoint.servers.scoring_server import Scoring, Way, scoring_server
from tests.models.real_model import real_model

QUICK = EndpointSettings(retries=1, timeout_s=30)
REQUESTS: list[Any] = [
    ("The capital of France is", " Paris"),
    ("The capital of France is", " a large city in the north."),
    ("naïve 東京", " x"),
    ("", "Once upon a time"),
    ([504, 3575, 282], [4649, 314]),
]


@pytest.fixture(scope="module")
def local() -> LanguageModel:
    return real_model()


@pytest.fixture(scope="module")
def small() -> LanguageModel:
    """For what does not hang on the model: its answers are changed on their way."""
    return load_model("tiny", device="cpu")


@pytest.mark.parametrize("way", ["prompt_logprobs", "echo"])
def test_scores_are_those_of_the_model(local: LanguageModel, way: Way) -> None:
    with scoring_server(local, way) as made:
        model = load_model(made.spec, endpoint=QUICK)
        assert model.offers[Capability.LOGLIKELIHOOD].has
        found = model.loglikelihood(REQUESTS)
        with pytest.raises(ModelError, match="next-token distribution"):
            model.loglikelihood(REQUESTS, stats=True)
        with pytest.raises(ModelError, match="next-token distribution"):
            model.next_token_log_mass([("a", "")], [1])
    for here, there in zip(local.loglikelihood(REQUESTS), found, strict=True):
        assert there.token_ids.tolist() == here.token_ids.tolist()
        np.testing.assert_allclose(there.logprobs, here.logprobs, atol=1e-3)
        assert there.greedy == here.greedy and there.boundary_merged == here.boundary_merged
        known = there.ranks >= 0
        assert (there.ranks[known] == here.ranks[known]).all() and (here.ranks[~known] > 0).all()


@pytest.mark.parametrize("way", ["prompt_logprobs", "echo"])
def test_the_small_model_is_served_too_where_nothing_is_changed(small: LanguageModel, way: Way) -> None:
    with scoring_server(small, way) as made:
        assert load_model(made.spec, endpoint=QUICK).offers[Capability.LOGLIKELIHOOD].has


def _change(edit: Callable[[Body], None], local: LanguageModel, way: Way) -> Callable[[str, Body], Body]:
    scoring = Scoring(local, way)

    def answer(route: str, body: Body) -> Body:
        said = scoring.answer(route, body)
        if "prompt_logprobs" in body or body.get("echo"):
            edit(said["choices"][0])
        return said

    return answer


def _swap_tokens(choice: Body) -> None:
    if choice.get("logprobs"):
        choice["logprobs"]["tokens"][1:3] = choice["logprobs"]["tokens"][2:0:-1]


def _generated_alone(choice: Body) -> None:
    if choice.get("logprobs"):
        choice["logprobs"] = {name: values[-1:] for name, values in choice["logprobs"].items()}


def _constant(choice: Body) -> None:
    if choice.get("logprobs"):
        choice["logprobs"]["token_logprobs"] = [None, *[-1.0] * (len(choice["logprobs"]["tokens"]) - 1)]


def _base_ten(choice: Body) -> None:
    if logprobs := choice.get("logprobs"):
        logprobs["token_logprobs"] = [None, *(one / math.log(10) for one in logprobs["token_logprobs"][1:])]
        tops = logprobs["top_logprobs"][1:]
        logprobs["top_logprobs"] = [None, *({k: one / math.log(10) for k, one in top.items()} for top in tops)]


def _without_one(choice: Body) -> None:
    if choice.get("prompt_logprobs"):
        choice["prompt_logprobs"].pop()


def _not_a_number(choice: Body) -> None:
    if choice.get("prompt_logprobs"):
        for entry in choice["prompt_logprobs"][1:]:
            next(iter(entry.values()))["logprob"] = math.nan


def _no_float(choice: Body) -> None:
    if choice.get("prompt_logprobs"):
        next(iter(choice["prompt_logprobs"][2].values()))["logprob"] = -(10**400)


def _of_words(choice: Body) -> None:
    if choice.get("prompt_logprobs"):
        choice["prompt_logprobs"][2] |= {"Paris": {"logprob": -9.0}}


def _without_record(choice: Body) -> None:
    if choice.get("prompt_logprobs"):
        choice["prompt_logprobs"][2] |= {"7": -9.0}


def _above_zero(choice: Body) -> None:
    if choice.get("prompt_logprobs"):
        next(iter(choice["prompt_logprobs"][2].values()))["logprob"] = 0.5


@pytest.mark.parametrize(
    ("way", "edit"),
    [
        ("echo", _swap_tokens),
        ("echo", _generated_alone),
        ("echo", _constant),
        ("echo", _base_ten),
        ("prompt_logprobs", _without_one),
        ("prompt_logprobs", _not_a_number),
        ("prompt_logprobs", _no_float),
        ("prompt_logprobs", _above_zero),
        ("prompt_logprobs", _of_words),
        ("prompt_logprobs", _without_record),
    ],
)
def test_a_server_whose_scores_are_not_the_prompt_s_has_none(
    small: LanguageModel, way: Way, edit: Callable[[Body], None]
) -> None:
    tokenize = {"/tokenize": Scoring(small, way).tokenize}
    with made_server(_change(edit, small, way), routes=tokenize) as made:
        offer = load_model(made.spec, endpoint=QUICK).offers[Capability.LOGLIKELIHOOD]
    assert not offer.has and way in offer.why


def _with_top(model: LanguageModel, way: Way, factor: float, told: int) -> Callable[[str, Body], Body]:
    """A server that tells the likeliest tokens of each place, ``told`` at most, in logarithms of another base."""
    scoring = Scoring(model, way)

    def places(ids: list[int]) -> list[dict[int, float]]:
        with torch.no_grad():
            table = model.module(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1) * factor
        best = [row.topk(told) for row in table[:-1]]
        return [
            {own: float(row[own]), **dict(zip(one.indices.tolist(), one.values.tolist(), strict=True))}
            for row, one, own in zip(table, best, ids[1:], strict=False)
        ]

    def answer(route: str, body: Body) -> Body:
        said = scoring.answer(route, body)
        choice, prompt = said["choices"][0], body.get("prompt")
        if not (choice.get("prompt_logprobs") or choice.get("logprobs")):
            return said
        ids = list(prompt) if isinstance(prompt, list) else list(model.tokenizer(str(prompt))["input_ids"])
        if choice.get("prompt_logprobs"):
            choice["prompt_logprobs"] = [
                None,
                *(
                    {
                        str(one): {"logprob": value, "rank": 1, "decoded_token": model.tokenizer.decode([one])}
                        for one, value in place.items()
                    }
                    for place in places(ids)
                ),
            ]
        else:
            tops = [{str(one): value for one, value in place.items()} for place in places(ids)]
            own = [float(next(iter(place.values()))) for place in places(ids)]
            choice["logprobs"] |= {"top_logprobs": [None, *tops, None], "token_logprobs": [None, *own, -1.0]}
        return said

    return answer


@pytest.mark.parametrize("way", ["prompt_logprobs", "echo"])
@pytest.mark.parametrize("told", [5, 20])
def test_logarithms_of_base_two_are_told_by_whole_places(small: LanguageModel, way: Way, told: int) -> None:
    tokenize = {"/tokenize": Scoring(small, way).tokenize}
    for factor, has in ((1.0, True), (1 / math.log(2), False)):
        with made_server(_with_top(small, way, factor, told), routes=tokenize) as made:
            offer = load_model(made.spec, endpoint=QUICK).offers[Capability.LOGLIKELIHOOD]
        assert offer.has == has and ("of base 2" in offer.why) == (not has)


ODD = [("naïve 東京", " 🦙é x"), ("\U0001f1ea\U0001f1fa", " 東")]
"""Texts whose tokens end within a character."""


def _bytes_as_text(tokens: list[bytes]) -> list[str]:
    """As the older completions API spells a token that is no text."""
    return [_text_of(one) or "bytes:" + "".join(f"\\x{byte:02x}" for byte in one) for one in tokens]


def _replaced(tokens: list[bytes]) -> list[str]:
    return [one.decode("utf-8", "replace") for one in tokens]


def _surrogates(tokens: list[bytes]) -> list[str]:
    return [one.decode("utf-8", "surrogateescape") for one in tokens]


def _held_back(tokens: list[bytes]) -> list[str]:
    """As a streaming decoder has it: nothing, until a character is whole."""
    decoder, texts = getincrementaldecoder("utf-8")("replace"), []
    for one in tokens:
        texts.append(decoder.decode(one))
    return texts


def _text_of(token: bytes) -> str | None:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("spell", [_bytes_as_text, _replaced, _surrogates, _held_back])
@pytest.mark.parametrize("way", ["prompt_logprobs", "echo"])
def test_tokens_that_end_within_a_character_are_scored_however_they_are_spelt(
    small: LanguageModel, way: Way, spell: Callable[[list[bytes]], list[str]]
) -> None:
    """Tokens are told apart by their ids and places: what a server makes of half a character is of no account."""
    scoring, letters = Scoring(small, way), _letters()

    def answer(route: str, body: Body) -> Body:
        said = scoring.answer(route, body)
        ids, choice = body.get("prompt"), said["choices"][0]
        if isinstance(ids, list) and (choice.get("prompt_logprobs") or choice.get("logprobs")):
            strings = small.tokenizer.convert_ids_to_tokens(ids)
            texts = spell([bytes(letters[letter] for letter in one) for one in strings])
            assert texts != [small.tokenizer.decode([one]) for one in ids] or spell is _replaced
            for place, text in enumerate(texts):
                if choice.get("logprobs"):
                    choice["logprobs"]["tokens"][place] = text
                elif place:
                    next(iter(choice["prompt_logprobs"][place].values()))["decoded_token"] = text
        return said

    with made_server(answer, routes={"/tokenize": scoring.tokenize, "/detokenize": scoring.detokenize}) as made:
        model = load_model(made.spec, endpoint=QUICK)
        found = model.loglikelihood(ODD)
    for here, there in zip(small.loglikelihood(ODD), found, strict=True):
        assert there.token_ids.tolist() == here.token_ids.tolist()
        np.testing.assert_allclose(there.logprobs, here.logprobs, atol=1e-3)


@pytest.mark.parametrize("edit", [_not_a_number, _no_float, _above_zero, _without_one])
def test_scores_that_break_later_end_the_case_and_are_never_numbers(
    small: LanguageModel, edit: Callable[[Body], None]
) -> None:
    with scoring_server(small, "prompt_logprobs") as made:
        model = load_model(made.spec, endpoint=QUICK)
        made.answer = _change(edit, small, "prompt_logprobs")
        with pytest.raises(ModelError, match="log-probabilit"):
            model.loglikelihood(REQUESTS[:2])


def test_a_tokenizer_of_another_model_is_refused_with_both_numbers() -> None:
    with made_server(words) as made, pytest.raises(ModelError, match=r"counts \d+ tokens in .*, the server 6"):
        load_model(made.spec, endpoint=EndpointSettings(tokenizer="tiny", retries=0))
