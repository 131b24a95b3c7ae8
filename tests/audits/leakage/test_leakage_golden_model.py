"""The real model's predictions and log-probabilities against values from independent reference runs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from lm_audit.audits.leakage import min_k, ngram_accuracy, order_test, probe
from lm_audit.models import LanguageModel
from tests.audits.leakage.leakage_golden import SETS, as_item, golden, shortest
from tests.models.real_model import real_model


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    return real_model()


def compare_probes(model: LanguageModel, records: list[dict[str, Any]], *, published: bool) -> None:
    items = [as_item(record) for record in records]
    expected = [p for record in records for p in record["probes"]]
    conditions: list[tuple[dict[str, Any], str, str]] = [({"rule": "as_published"}, "pred_id", "match")]
    if not published:
        conditions += [
            ({"rule": "bytes", "repetition_penalty": 1.05}, "pred_id", "byte_match"),
            ({"rule": "bytes"}, "greedy_id", "greedy_byte_match"),
            ({"rule": "as_published", "repetition_penalty": 1.0}, "greedy_id", "greedy_match"),
        ]
    for options, token, hit in conditions:
        table = probe(model, items, **options)
        assert table["predicted_id"].tolist() == [p[token] for p in expected]
        assert table["hit"].tolist() == [p[hit] for p in expected]
        assert table["margin"].tolist() == pytest.approx([p["top1_margin"] for p in expected], abs=1e-3)
        aligned = [p["prefix_tokens_are_prefix_of_full"] for p in expected]
        assert (table["boundary"] == "aligned").tolist() == aligned
        assert table["suffix"].tolist() == [p["suffix"] for p in expected]


@pytest.mark.parametrize("name", [pytest.param("cfa_l1", marks=pytest.mark.slow), "cpa_multi"])
def test_probe_reproduces_the_published_predictions(smollm2: LanguageModel, name: str) -> None:
    compare_probes(smollm2, shortest(golden("probe")[name], 2), published=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_probe_reproduces_every_published_prediction(smollm2: LanguageModel, name: str) -> None:
    compare_probes(smollm2, golden("probe")[name], published=name.endswith("_old"))


def compare_orders(model: LanguageModel, records: list[dict[str, Any]]) -> None:
    table = order_test(model, [as_item(record) for record in records], 24, seed=0)
    for row, record in zip(table.to_dict("records"), records, strict=True):
        found = dict(zip(map(tuple, row["orders"]), row["logprobs"], strict=True))
        assert found == pytest.approx(
            dict(zip(map(tuple, record["orders"]), record["logprobs"], strict=True)), abs=2e-3
        )
        assert row["published_rank"] == record["published_rank"]
        assert row["p_rank"] == pytest.approx(record["p_rank"])


def test_order_ranks(smollm2: LanguageModel) -> None:
    compare_orders(smollm2, shortest(golden("order")["questions"], 1))


@pytest.mark.slow
def test_every_order_rank(smollm2: LanguageModel) -> None:
    compare_orders(smollm2, golden("order")["questions"])


def test_ngrams_perplexity_and_min_k(smollm2: LanguageModel) -> None:
    texts = golden("ngram")["texts"]
    chosen = [text for text in texts if text["n_tokens"] < 120]
    table = ngram_accuracy(smollm2, [(text["question"], text["answer"]) for text in chosen], published=True)
    for row, text in zip(table.to_dict("records"), chosen, strict=True):
        assert row["n_tokens"] == text["n_tokens"]
        if text.get("skipped"):
            assert "tokens" in row["skipped"]
            assert pd.isna(row["accuracy"])
            continue
        assert row["starts"] == text["starts"]
        assert row["hits"] == text["teacher_forced"]
        assert row["accuracy"] == pytest.approx(text["teacher_forced_accuracy"])
        assert row["mean_logprob"] == pytest.approx(text["mean_logprob"], abs=1e-4)
        assert row["perplexity"] == pytest.approx(text["ppl"], rel=1e-4)


def test_min_k_of_real_texts(smollm2: LanguageModel) -> None:
    for text in golden("ngram")["texts"]:
        if text.get("token_logprobs"):
            for percent, expected in text["min_k"].items():
                found = min_k(text["token_logprobs"], int(percent) / 100, rounding="floor")
                assert found == pytest.approx(expected, abs=1e-4)
