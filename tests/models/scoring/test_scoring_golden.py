"""The engine on SmolLM2-135M-Instruct against reference values in float64 and float32."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from lm_audit.models.language_model import LanguageModel
from tests.models.real_model import real_model
from tests.shared_data import golden_file


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    pytest.importorskip("gguf")
    from lm_audit.errors import ModelError

    try:
        return real_model()
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def lmeval() -> Any:
    return json.loads(golden_file("lmeval_loglikelihood.json").read_text())


every = pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
"""One reference value of four, or all of them."""


@every
def test_matches_float64_on_lm_evals_list(smollm2: LanguageModel, lmeval: Any, step: int) -> None:
    # All whose context and continuation share a token, of which there are few.
    records = [one for k, one in enumerate(lmeval["loglikelihood"]) if k % step == 0 or "joint" in one]
    # lm-evaluation-harness conditions an empty context on the model's BOS; elsewhere it adds none for this tokenizer.
    requests = [(r["context"] or [lmeval["settings"]["prefix_token_id"]], r["continuation"]) for r in records]
    scores = smollm2.loglikelihood(requests)
    for record, score in zip(records, scores, strict=True):
        reference = record.get("joint", record)
        total, greedy = reference["ref_float64"]
        assert score.token_ids.tolist() == reference["cont_ids"], record["id"]
        assert score.total == pytest.approx(total, abs=1e-3), record["id"]
        assert score.greedy == greedy, record["id"]
        assert score.boundary_merged == ("joint" in record), record["id"]


def test_what_lm_eval_gets_wrong(smollm2: LanguageModel, lmeval: Any) -> None:
    same_tokens, *merged = lmeval["pathological"]
    scores = smollm2.loglikelihood([tuple(r) for r in same_tokens["requests"]])
    for score, (total, greedy) in zip(scores, same_tokens["ref_float64"], strict=True):
        assert score.total == pytest.approx(total, abs=1e-3)
        assert score.greedy == greedy
    for case in merged:
        (score,) = smollm2.loglikelihood([tuple(r) for r in case["requests"]])
        assert score.boundary_merged
        assert score.token_ids.tolist() == case["joint"]["cont_ids"]
        assert score.total == pytest.approx(case["joint"]["ref_float64"][0], abs=1e-3)


# By default this model has no BOS: the audit's own test of these texts takes that way.
@pytest.mark.parametrize(
    ("key", "bos"), [("no_bos", "none"), ("with_bos", 1), pytest.param("no_bos", "default", marks=pytest.mark.slow)]
)
def test_privacy_scores(smollm2: LanguageModel, key: str, bos: Any) -> None:
    items = json.loads(golden_file("privacy/scores_smollm2.json").read_text())["items"]
    scores = smollm2.loglikelihood([("", item["text"]) for item in items], bos=bos, stats=True)
    for item, score in zip(items, scores, strict=True):
        golden = item[key]
        np.testing.assert_allclose(score.logprobs, golden["token_logprobs"], atol=2e-4)
        ranks = np.array(golden["token_ranks0"])
        assert (np.abs(score.ranks - ranks) <= (ranks > 1000)).all(), item["id"]
        assert score.entropy is not None and score.mean_logprob is not None and score.std_logprob is not None
        assert score.entropy.mean() == pytest.approx(golden["mean_entropy_scored"], abs=2e-4)
        plus = np.sort((score.logprobs - score.mean_logprob) / score.std_logprob)[: golden["k_ceil"]].mean()
        assert plus == pytest.approx(golden["min_kpp20_ceil"], abs=5e-4)


@every
def test_bias_probe(smollm2: LanguageModel, step: int) -> None:
    probe = json.loads(golden_file("bias/probe_dev.json").read_text())
    cells = [(r, w) for r in probe["records"][::step] for w in r["words"]]
    assert {record["lang"] for record, _ in cells} == {"en", "zh"}
    requests = [(r["prompt"], (" " if r["lang"] == "en" else "") + w["word"]) for r, w in cells]
    for (record, word), score in zip(cells, smollm2.loglikelihood(requests), strict=True):
        assert score.token_ids.tolist() == word["ids"], (record["prompt"], word["word"])
        assert score.total == pytest.approx(word["lp"], abs=1e-3), (record["prompt"], word["word"])
        np.testing.assert_allclose(score.logprobs, word["tok_lp"], atol=1e-3)
    words = probe["unconditional_bos1"]
    spaced = [("", word if ord(word[0]) > 127 else " " + word) for word in words]
    for word, score in zip(words, smollm2.loglikelihood(spaced, bos=1), strict=True):
        assert score.total == pytest.approx(words[word], abs=1e-3), word
