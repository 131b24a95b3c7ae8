"""Every needle metric says from which rows it comes, which way is better, and what is independent."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.audits.needle.answers.answerers import Answer
from lm_audit.audits.needle.answers.evaluation import cell_evidence, grid_evidence
from lm_audit.audits.needle.grid.cells import Scored, score_sample
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.samples.building import build_sample
from lm_audit.audits.needle.samples.task import NeedleTask
from lm_audit.sources import unreproduced, unsourced
from tests.audits.needle.text.needle_tokenizers import small_tokenizer


def scored(count: int = 8, lengths: tuple[int, ...] = (256, 512), *, shared: bool = False) -> list[Scored]:
    found = []
    for length in lengths:
        for depth in (0.0, 100.0):
            for index in range(count):
                hit = float((index * 7 + length // 256 + int(depth > 0)) % 5 > 0)
                text = "1234567" if hit else ("" if index % 2 else "<think>never ended")
                answer = Answer(text, "eos" if index % 3 else "length", 3, -0.1 * index - 0.2, 7, bool(index % 2))
                found.append(
                    Scored(
                        f"L{length}-D{depth:g}-{index}",
                        length,
                        depth,
                        depth,
                        {"all": hit, "any": hit, "boundary": hit * 0.5},
                        hit or None,
                        answer,
                        ("1234567",),
                        "around",
                        f"stretch {index}" if shared else None,
                    )
                )
    return found


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("scorer", ["all", "any", "boundary"])
def test_the_rows_give_every_metric(shared: bool, scorer: str) -> None:
    for evidence in (
        grid_evidence(scored(30, shared=shared), scorer=scorer, threshold=0.4),
        cell_evidence(scored(9, (256,), shared=shared), scorer=scorer),
    ):
        assert unreproduced(evidence) == [] and unsourced(evidence) == []
        assert all(metric.better for metric in evidence.metrics.values())
        assert all(source.clusters == ("stretch",) for source in evidence.sources.values() if shared)


def test_the_cliff_comes_from_the_rows() -> None:
    evidence = grid_evidence(scored(60), threshold=0.6)

    assert evidence.metrics["needle.cliff"].value == 512.0 and unreproduced(evidence) == []


def test_few_shared_stretches_give_no_interval() -> None:
    few = grid_evidence(scored(3, shared=True)).metrics["needle.accuracy"]
    many = grid_evidence(scored(12, shared=True)).metrics["needle.accuracy"]

    assert few.low is None and "3 clusters" in str(few.note) and few.units == 3
    assert many.low is not None and many.units == 12


def test_a_share_of_none_has_an_upper_limit_above_0() -> None:
    metric = grid_evidence([one for one in scored() if one.answer.answer is not None]).metrics["needle.no_answer"]

    assert metric.value == 0.0 and metric.high is not None and metric.high > 0.05


def test_what_this_size_can_never_show_is_said_in_the_case() -> None:
    def notes(evidence: Any) -> str:
        return " ".join(evidence.notes)

    assert "this size can show no cliff: fewer than" in notes(grid_evidence(scored(2)))
    assert "can show no cliff" not in notes(grid_evidence(scored(30)))
    assert "no verdict on this cell alone" in notes(cell_evidence(scored(1, (256,))))
    assert "no verdict on this cell alone" not in notes(cell_evidence(scored(30, (256,))))
    # Two of two show 0.16 at the least.
    asked = cell_evidence(scored(2, (256,)), threshold=0.1)
    assert "no verdict on this cell alone" not in notes(asked) and "10 of 100 needles" in asked.findings[0].unknown


def content(tokenizer: str = "byte-level", haystack: str = "essay", seed: int = 0) -> str | None:
    sample = build_sample(
        Haystack(haystack, small_tokenizer(tokenizer)), length=400, depth=50.0, needle=NeedleTask(), seed=seed
    )
    return score_sample(sample, Answer("x", "eos", 1, None, None, False)).content


def test_an_item_is_what_was_hidden_in_which_text_whatever_the_tokenizer_makes_of_it() -> None:
    same = content()
    assert same is not None and content("tiktoken") == same
    assert len({same, content(haystack="noise"), content(seed=1)}) == 3
