"""The embedded model behind llama.cpp's server against the same weights on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lm_audit.errors import ContextError, ModelError, UsageError
from lm_audit.models import LanguageModel, load_model
from lm_audit.models.capabilities import Capability, missing
from lm_audit.models.endpoint.model import EndpointModel
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.plugin.options.run_options import RunOptions
from tests.endpoint.servers.made_server import Body, made_server, words
from tests.models.real_model import real_model

TEXTS = ("Hello naïve 東京\n x", "<|im_start|>user\nhi", " a", "", "e\u0301 🙂🙂 end  ")


@pytest.fixture(scope="module")
def model(served: str) -> Iterator[EndpointModel]:
    found = load_model(served)
    assert isinstance(found, EndpointModel)
    yield found
    found.close()


@pytest.fixture(scope="module")
def local() -> LanguageModel:
    return real_model()


def test_llama_cpp_takes_echo_and_gives_no_log_probabilities_of_the_prompt(model: EndpointModel) -> None:
    offers = model.offers
    assert offers[Capability.GENERATE].has and offers[Capability.CONTINUE].has
    assert not offers[Capability.LOGLIKELIHOOD].has and "echo" in offers[Capability.LOGLIKELIHOOD].why
    assert model.facts.context == 2048 and model.facts.dialect == "llama.cpp" and model.facts.takes_ids
    told = missing([Capability.GENERATE, Capability.GRADIENTS], offers)
    assert told == "gradients (the weights are behind a server)"
    with pytest.raises(ModelError, match="does not offer prompt log-probabilities"):
        model.loglikelihood([("a", "b")])
    with pytest.raises(ModelError, match="does not offer hidden states"):
        _ = model.module


@pytest.mark.parametrize("text", TEXTS)
def test_the_server_s_tokens_and_their_places_are_those_of_the_tokenizer(
    model: EndpointModel, local: LanguageModel, text: str
) -> None:
    here = local.tokenizer(text, return_offsets_mapping=True)
    there = model.tokenizer(text, return_offsets_mapping=True)
    assert there.input_ids == here.input_ids
    assert there["offset_mapping"] == here["offset_mapping"]
    assert model.tokenizer.decode(here.input_ids) == text


def test_it_answers_as_the_local_model_does_as_far_as_its_arithmetic_goes(
    model: EndpointModel, local: LanguageModel
) -> None:
    prompts = ["The capital of France is", "One, two, three, four,", "The opposite of hot is"]
    here = local.generate(prompts, max_new_tokens=2)
    there = model.generate(prompts, max_new_tokens=2)
    assert [one.token_ids[0] for one in there] == [one.token_ids[0] for one in here]
    assert model.render_chat("Say hi") == local.render_chat("Say hi")
    by_ids = model.generate([local.tokenizer(prompts[0]).input_ids], max_new_tokens=2)
    assert by_ids[0].text == there[0].text
    assert model.generate(["Say hi"], max_new_tokens=3, chat=True)[0].text.strip()
    assert "of 3 greedy requests" in model.provenance()["endpoint.determinism"]


def test_samples_differ_by_seed_and_by_repeat_and_come_again(model: EndpointModel) -> None:
    def sampled(seed: int) -> list[str]:
        drawn = model.generate(["Once upon a time"] * 2, max_new_tokens=8, temperature=1.5, seed=seed)
        return [one.text for one in drawn]

    first = sampled(1)
    assert first[0] != first[1]
    assert sampled(2) != first


def test_a_prompt_beyond_the_context_is_told_in_one_line(model: EndpointModel) -> None:
    with pytest.raises(ContextError, match=r"prompt 0 needs 2502 tokens, and smollm2-served reads at most 2048"):
        model.generate(["word " * 2500], max_new_tokens=1)


def test_a_model_that_is_not_served_is_refused_with_the_names_that_are(served: str) -> None:
    with pytest.raises(UsageError, match="no such model there; did you mean 'smollm2-served'"):
        load_model(served.replace("smollm2-served", "smollm2-servd"))


def test_a_completions_route_that_chats_continues_no_text() -> None:
    """Ollama's puts the prompt into the model's template: what comes back is a reply to it, and no continuation."""

    def templated(route: str, body: Body) -> Body:
        if "prompt" in body:
            body = body | {"prompt": f"<|user|> {body['prompt']} <|end|> <|assistant|>"}
        return words(route, body)

    with made_server(templated) as made:
        offers = load_model(made.spec, endpoint=EndpointSettings(retries=0)).offers
    assert offers[Capability.GENERATE].has and not offers[Capability.CONTINUE].has
    assert "puts the prompt into a template ('a' is read as 4 tokens)" in offers[Capability.CONTINUE].why


@pytest.mark.parametrize("missing_routes", [set(), {"/v1/completions"}])
def test_an_audit_in_the_chat_template_takes_a_server_that_keeps_its_template(missing_routes: set[str]) -> None:
    """What cannot be rendered here is no broken template: refusals are asked for in messages."""
    with made_server() as made:
        made.routes_missing = missing_routes
        model = load_model(made.spec, endpoint=EndpointSettings(repeat_checks=0))
        assert RunOptions().in_template(model.tokenizer, default="auto", name="made")
        assert model.generate(["how are you"], max_new_tokens=4, chat=True)[0].text == "you are how"
