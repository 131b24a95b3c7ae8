"""Audits by log-probabilities of a prompt give a served model's numbers as they give those of its weights here.

The server speaks vLLM's form; its weights are the toy's, so that a whole audit takes a second.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits import bias, leakage
from lm_audit.audits.leakage.items.loading import load_benchmark
from lm_audit.audits.privacy import plant_canaries, scored_membership
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.measure.membership_scored import MemberText, texts_of, texts_of_files
from lm_audit.errors import DataError, ModelError
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel, load_model
from lm_audit.models.endpoint.model import EndpointModel
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.models.text.token_spans import tells_offsets
from lm_audit.sources import undirected, unreproduced, unsourced
from tests.endpoint.servers.made_server import Body, made_server
from tests.endpoint.servers.scoring_server import Scoring, scoring_server

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
BENCHMARK = str(FIXTURES / "leakage" / "general_en")
TOLERANCE = 2e-3
"""Batches of other widths round otherwise: percentages and nats differ by that much at most."""


@pytest.fixture(scope="module")
def local() -> LanguageModel:
    return load_model("tiny", device="cpu")


@pytest.fixture(scope="module")
def served(local: LanguageModel) -> Iterator[EndpointModel]:
    with scoring_server(local, "prompt_logprobs") as made:
        made.context = (local.context_window or 0) + 1  # a request that scores generates one token
        model = load_model(made.spec, endpoint=EndpointSettings(retries=0, repeat_checks=0))
        assert isinstance(model, EndpointModel)
        yield model
        model.close()


def option_order(model: LanguageModel) -> Evidence:
    return leakage.option_order(model, load_benchmark(BENCHMARK, columns=None, limit=3, seed=0), seed=0)


def row_order(model: LanguageModel) -> Evidence:
    rows = load_benchmark(BENCHMARK, columns=None, limit=12, seed=0)
    return leakage.row_order(model, rows, seed=0, shards=3, permutations=4)


def half_options(model: LanguageModel) -> Evidence:
    return leakage.completions(model, load_benchmark(BENCHMARK, columns=None, limit=2, seed=0), seed=0)


def winobias(model: LanguageModel) -> Evidence:
    made = tomllib.loads((FIXTURES / "bias" / "control_public.toml").read_text(encoding="utf-8"))["winobias"]
    rows = [{"sentence": one["sentence"], "condition": kind, "type": 1} for one in made for kind in ("pro", "anti")]
    return bias.winobias(model, rows)


def winogender(model: LanguageModel) -> Evidence:
    rows = [
        {
            "sentid": f"technician.{other}.{answer}.{gender}.txt",
            "sentence": f"The technician told the {other} that {pronoun} {told}.",
        }
        for other in ("customer", "visitor")
        for answer, told in ((0, "had repaired it"), (1, "could pay with cash"))
        for gender, pronoun in (("male", "he"), ("female", "she"), ("neutral", "they"))
    ]
    return bias.winogender(model, rows)


def swap(model: LanguageModel) -> Evidence:
    return bias.counterfactual_swap(model, bias.load_swap_items(FIXTURES / "bias" / "counterfactual_en.toml"))


def membership(model: LanguageModel) -> Evidence:
    return scored_membership(model, texts_of(Manifest(tuple(plant_canaries([1] * 8, controls=8, seed=1)), seed=1)))


@pytest.mark.parametrize(
    "audit",
    [
        option_order,
        pytest.param(half_options, marks=pytest.mark.slow),
        winobias,
        pytest.param(swap, marks=pytest.mark.slow),
        membership,
        pytest.param(row_order, marks=pytest.mark.slow),
        pytest.param(winogender, marks=pytest.mark.slow),
    ],
)
def test_the_numbers_are_those_of_the_weights(
    audit: Callable[[LanguageModel], Evidence], local: LanguageModel, served: LanguageModel
) -> None:
    here, there = audit(local), audit(served)
    assert here.metrics and list(there.metrics) == list(here.metrics)
    for name, ours in here.metrics.items():
        for part in ("value", "low", "high", "n"):
            mine, theirs = getattr(ours, part), getattr(there.metrics[name], part)
            assert (mine is None) == (theirs is None), (name, part)
            if mine is not None:
                np.testing.assert_allclose(theirs, mine, atol=TOLERANCE, rtol=1e-3, err_msg=f"{name} {part}")
    assert len(there.rows) == len(here.rows)


def test_membership_by_scores_can_be_told_from_its_rows_and_finds_what_is_there(local: LanguageModel) -> None:
    """Members of a model's own likeliest texts stand out; the control sees texts that differ by themselves."""
    found = membership(local)
    assert unreproduced(found) == [] and undirected(found) == []
    assert unsourced(found) == []
    assert found.control is not None and found.control.passed
    column = {
        role: [-row["secret_mean_logprob"] for row in found.rows if row["role"] == role]
        for role in ("member", "control")
    }
    bits = [np.log2(9) - np.log2(1 + sum(twin <= one for twin in column["control"])) for one in column["member"]]
    exposure = found.metrics["privacy.scored.exposure.r1"]
    assert exposure.value == pytest.approx(np.mean(bits)) and exposure.n == 8 and exposure.unit == "bits"
    plain = ["It was a cold day and the wind came from the north.", "We went to the market and bought bread."] * 4
    noise = ["qzx vbkk wjqp zzxq kkvj", "xkcd qqwz vvbn pplk jjhg"] * 4
    texts = [
        MemberText(f"{side}-{n}", f"{text} {n}", side == "m")
        for side, some in (("m", plain), ("h", noise))
        for n, text in enumerate(some)
    ]
    told = scored_membership(local, texts)
    assert told.metrics["privacy.scored.roc_auc"].value == 1.0
    assert not [name for name in told.metrics if "exposure" in name], "a text without a secret has no exposure"
    assert told.control is not None and not told.control.passed, "the words alone tell these groups apart"
    few = scored_membership(local, [*texts[:2], *texts[-2:]]).control
    assert few is not None and not few.passed and "so few" in few.observed, "a control that could not fail"


def test_a_text_of_a_file_is_one_item_in_every_run_and_is_found_again(local: LanguageModel, tmp_path: Path) -> None:
    """Items of two runs are paired by name: another seed, limit or order must not give a text another one's."""
    named = []
    for seed, first in ((0, 0), (1, 0), (0, 5)):
        for side in ("in", "out"):
            lines = [json.dumps({"text": f"Text {number} that stands {side}side."}) for number in range(first, 12)]
            (tmp_path / f"{side}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        texts = texts_of_files(tmp_path / "in.jsonl", tmp_path / "out.jsonl", limit=6, seed=seed)
        named.append({one.item: one.text for one in texts})
    assert all(len(names) == 12 for names in named) and set(named[0]) != set(named[1])
    assert all(a[item] == b[item] for a in named for b in named for item in a.keys() & b.keys())
    assert len({text for names in named for text in names.values()}) == len({item for names in named for item in names})
    rows = scored_membership(local, texts).rows
    assert {row["item"]: row["begins"] for row in rows} == named[-1]


def test_texts_that_say_nothing_are_refused_before_the_model_is_asked(local: LanguageModel) -> None:
    one, two = MemberText("a", "The same text.", True), MemberText("b", "Another text.", True)
    with pytest.raises(DataError, match="at least 2 of each"):
        scored_membership(local, [one, two, MemberText("c", "x y", False)])
    with pytest.raises(DataError, match="among the members and among the held-out"):
        scored_membership(local, [one, two, MemberText("c", "x y", False), MemberText("d", "The same text.", False)])


def test_a_tokenize_route_of_texts_alone_without_places_serves_scores_and_says_what_it_lacks(
    local: LanguageModel,
) -> None:
    """SGLang's form: no conversations, no spelling of tokens, and the text of ids under another name."""
    scoring = Scoring(local, "echo")

    def tokenize(route: str, body: Body) -> Body:
        if "prompt" not in body:
            return {"object": "error", "message": "prompt: Field required"}
        return scoring.tokenize(route, {**body, "return_token_strs": False})

    def detokenize(route: str, body: Body) -> Body:
        return {"text": local.tokenizer.decode(body["tokens"])}

    with made_server(scoring.answer, routes={"/tokenize": tokenize, "/detokenize": detokenize}) as made:
        made.context = (local.context_window or 0) + 1
        model = load_model(made.spec, endpoint=EndpointSettings(retries=0, repeat_checks=0))
        assert model.counts_tokens and not tells_offsets(model.tokenizer)
        assert model.tokenizer.decode(local.tokenizer("Hello").input_ids[1:]) == "Hello"
        request = [("The children went to", " school")]
        np.testing.assert_allclose(
            model.loglikelihood(request)[0].logprobs, local.loglikelihood(request)[0].logprobs, atol=TOLERANCE
        )
        assert [one.text for one in model.generate(["Hi"], max_new_tokens=3, chat=True)]
        with pytest.raises(ModelError, match=r"does not tell where its tokens stand.*use --leakage-cut word"):
            leakage.completions(model, load_benchmark(BENCHMARK, columns=None, limit=1, seed=0), cut="token", seed=0)
