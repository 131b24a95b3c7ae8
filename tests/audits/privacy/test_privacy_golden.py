"""Scores, spans, ratios and extraction of a real model against values computed elsewhere."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from lm_audit.audits.privacy import (
    canary_ratio,
    check_ratio,
    extraction,
    insertion_positions,
    score_texts,
)
from lm_audit.audits.privacy.data.insertion import gaps
from lm_audit.errors import UsageError
from lm_audit.models import LanguageModel
from lm_audit.models.scoring import Bos
from tests.models.real_model import real_model
from tests.shared_data import golden_file

TOLERANCE = {"ppl": 5e-4, "min_k20_ceil": 5e-4, "min_kpp20_ceil": 5e-4, "mean_rank0": 1e-3}


@pytest.fixture(scope="module")
def golden() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(golden_file("privacy/scores_smollm2.json").read_text())["items"]
    return items


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    return real_model()


def expected(item: dict[str, Any], block: str) -> dict[str, Any]:
    found = item[block]
    names = ("mean_logprob", "sum_logprob", "ppl", "mean_rank0", "last_token_rank0", "min_k20_ceil", "min_kpp20_ceil")
    values = {name: found[name] for name in (*names, "mean_entropy_scored", "n_scored")}
    return values | {f"top{k}": found["top_hit"][str(k)] for k in (5, 10, 50)}


# Without a BOS is what this model takes by default; the engine's own test of these texts asks for it.
@pytest.mark.parametrize(
    ("bos", "block", "step"),
    [
        ("default", "no_bos", 2),
        (1, "with_bos", 2),
        # Every text, not every second one.
        pytest.param("none", "no_bos", 1, marks=pytest.mark.slow),
        pytest.param(1, "with_bos", 1, marks=pytest.mark.slow),
    ],
)
def test_scores_of_a_real_model(
    smollm2: LanguageModel, golden: list[dict[str, Any]], bos: Bos, block: str, step: int
) -> None:
    some = golden[::step]
    table = score_texts(smollm2, [item["text"] for item in some], bos=bos)
    for row, item in zip(table.to_dict("records"), some, strict=True):
        for name, value in expected(item, block).items():
            assert row[name] == pytest.approx(value, rel=TOLERANCE.get(name, 2e-4), abs=2e-4), (item["id"], name)


def test_text_ratios(smollm2: LanguageModel, golden: list[dict[str, Any]]) -> None:
    table = score_texts(smollm2, [item["text"] for item in golden])
    for row, item in zip(table.to_dict("records"), golden, strict=True):
        assert abs(row["zlib_bytes"] - item["zlib_bytes"]) <= 4
        assert row["zlib_ratio_mean_nll"] * row["zlib_bytes"] == pytest.approx(
            item["zlib_ratio_mean_nll"] * item["zlib_bytes"], rel=2e-4
        )
        assert row["lowercase_log_ratio"] == pytest.approx(item["lowercase_log_ratio"], rel=2e-4)


def test_span_scores(smollm2: LanguageModel, golden: list[dict[str, Any]]) -> None:
    marked = [item for item in golden if item.get("span")]
    assert marked
    spans = [(item["span"]["char_start"], item["span"]["char_end"]) for item in marked]
    table = score_texts(smollm2, [item["text"] for item in marked], spans=spans)
    for row, item in zip(table.to_dict("records"), marked, strict=True):
        assert row["span_mean_logprob"] == pytest.approx(item["span"]["mean_logprob"], abs=2e-4)
        assert row["span_n_scored"] == len(item["span"]["scored_token_index"])


some = pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
"""Every third text from the last on, which is the one that can be extracted, or all."""


@some
def test_greedy_extraction_equals_generation(smollm2: LanguageModel, golden: list[dict[str, Any]], step: int) -> None:
    assert golden[-1]["extraction"]["exact"]
    for item in golden[::-step]:
        row = extraction(smollm2, [item["text"]], prefix_tokens=item["extraction"]["prefix_len"]).iloc[0]
        for name in ("suffix_len", "exact", "teacher_forced_argmax_matches", "matched_prefix_tokens"):
            assert row[name] == item["extraction"][name], (item["id"], name)


@some
def test_source_extraction(smollm2: LanguageModel, golden: list[dict[str, Any]], step: int) -> None:
    from lm_audit.audits.privacy.measure.source_extraction import source_extracted
    from lm_audit.models.text.token_spans import encode_texts

    items = golden[::-step]
    assert items[0]["seed_style_extraction"]["extracted"]
    encoded = encode_texts(smollm2.tokenizer, [item["text"] for item in items])
    assert source_extracted(smollm2, encoded) == [item["seed_style_extraction"]["extracted"] for item in items]


def test_calibrated_scores_are_differences_and_oriented(smollm2: LanguageModel, golden: list[dict[str, Any]]) -> None:
    texts = [item["text"] for item in golden[:3]]
    alone = score_texts(smollm2, texts)
    against_itself = score_texts(smollm2, texts, reference=smollm2)
    assert against_itself["calibrated_logprob"].abs().max() < 1e-4
    shifted = score_texts(smollm2, texts, reference=alone.assign(mean_logprob=alone["mean_logprob"] - 1))
    assert shifted["calibrated_logprob"].to_list() == pytest.approx([1, 1, 1])
    assert (alone["ppl_score"] == -alone["ppl"]).all()
    assert (alone["mean_logprob_score"] == alone["mean_logprob"]).all()


def golden_statistics(group: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(golden_file("statistics.json").read_text())[group]
    return cases


def test_insertion_positions_and_gaps() -> None:
    for case in golden_statistics("insertion"):
        positions = insertion_positions(case["n_corpus"], case["n_canary"])
        found = gaps(positions, case["n_corpus"])
        assert [min(found), max(found)] == case["even_gap_min_max"]
        assert case["even_positions"] in (None, positions)


@pytest.mark.parametrize("denominator", ["total", "corpus"])
def test_ratio_thresholds(denominator: Literal["total", "corpus"]) -> None:
    for case in golden_statistics("ratio_threshold"):
        share = canary_ratio(case["n_corpus"], case["n_canary"], denominator=denominator)
        assert share == pytest.approx(case[f"ratio_{denominator}"], abs=1e-12)
        verdict = case[f"by_{denominator}"]
        if verdict == "error":
            with pytest.raises(UsageError, match="1%"):
                check_ratio(share)
        else:
            assert check_ratio(share) == verdict
