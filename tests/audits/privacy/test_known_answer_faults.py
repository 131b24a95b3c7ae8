"""Faults in what is reported of known answers: texts scored alone, ranks among all secrets, replies, seeds, power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.privacy import audit as privacy_audit
from lm_audit.audits.privacy.attribution import directions
from lm_audit.audits.privacy.controls.bigrams import Paper, bigram_model
from lm_audit.audits.privacy.controls.known_extraction import wrong_of_known_extraction
from lm_audit.audits.privacy.controls.known_members import wrong_of_known_members, wrong_of_known_ranks
from lm_audit.audits.privacy.controls.known_replies import (
    KnownReplies,
    known_canaries,
    wrong_of_known_replies,
    wrong_of_known_thoughts,
)
from lm_audit.audits.privacy.controls.known_scores import known_scores
from lm_audit.audits.privacy.controls.known_seeds import wrong_of_known_seeds, wrong_power
from lm_audit.audits.privacy.measure import exact_exposure as ranks
from lm_audit.audits.privacy.measure import extract, membership, stage_scores
from lm_audit.audits.privacy.measure import extraction_generated as replies
from lm_audit.audits.privacy.measure import membership_scored as scored
from lm_audit.audits.privacy.measure import source_extraction as source
from lm_audit.audits.privacy.stages import seeds
from lm_audit.audits.second_opinion import found_wrong
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel
from lm_audit.models.generation.continuation import Generation
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate
from tests.audits.faults_and_guards import remembered
from tests.audits.reporting_faults import CHANCES, COUNTS, WIDTHS, Fault
from tests.present import present

SCORE = remembered(LanguageModel.loglikelihood)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageModel, "loglikelihood", SCORE)


@cache
def paper() -> Paper:
    return Paper.of(bigram_model(0))


PARTS: dict[str, Callable[[], list[str]]] = {
    "texts": lambda: wrong_of_known_members(paper(), 0),
    "ranks": lambda: wrong_of_known_ranks(paper(), 0),
    "replies": wrong_of_known_replies,
    "continuations": wrong_of_known_extraction,
    "thoughts": wrong_of_known_thoughts,
    "seeds": wrong_of_known_seeds,
    "power": wrong_power,
}
SLOW = {"texts"}
"""A second each."""


def put(module: Any, name: str, change: Callable[..., Any]) -> Fault:
    """``change(honest, *words, **options)`` in the place of a function."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = getattr(module, name)
        patch.setattr(module, name, lambda *words, **options: change(honest, *words, **options))

    return apply


def halved(found: Estimate) -> Estimate:
    if found.value is None or found.low is None or found.high is None:
        return found
    return replace(found, low=(found.value + found.low) / 2, high=(found.value + found.high) / 2)


def _narrow(honest: Any, *words: Any, **options: Any) -> Estimate:
    return halved(honest(*words, **options))


def _source_of(name: str, change: Callable[[MetricSource], MetricSource]) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = Evidence.metric

        def metric(self: Evidence, metric: str, estimate: Estimate, source: MetricSource | None = None) -> None:
            honest(self, metric, estimate, change(source) if source and name in metric else source)

        patch.setattr(Evidence, "metric", metric)

    return apply


def _turned(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(directions.RISK, "secret_mean_logprob", -1)


def _whole_reply(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generation, "answer", property(lambda self: self.text))


FAULTS: dict[str, dict[str, Fault]] = {
    "replies": {
        "thoughts count as answers": _whole_reply,
        "anywhere in the reply": put(replies, "_given_back", lambda honest, a, c: a is not None and c.secret in a),
        "most of a secret is enough": put(
            replies, "_given_back", lambda honest, a, c: a is not None and a.lstrip().startswith(c.secret[:-1])
        ),
        "replies of the next canary": put(
            KnownReplies, "generate", lambda honest, self, prompts, **o: np.roll(honest(self, prompts, **o), 1).tolist()
        ),
        "prompts turned round": put(
            KnownReplies, "generate", lambda honest, self, prompts, **o: honest(self, prompts[::-1], **o)
        ),
        "the first sample alone": put(
            KnownReplies,
            "generate",
            lambda honest, self, prompts, **o: [
                one if not o.get("temperature") or place % 3 == 0 else Generation("", (), "eos")
                for place, one in enumerate(honest(self, prompts, **o))
            ],
        ),
        "the secret in the prompt": put(replies, "_prefix", lambda honest, canary: canary.text),
        "a difference turned round": put(
            replies,
            "clustered_share_difference",
            lambda honest, values, first, *w, **o: honest(values, [not one for one in first], *w, **o),
        ),
        "half of the width of a difference": put(replies, "clustered_share_difference", _narrow),
        "half of the width of a share": put(replies, "share", _narrow),
        "no chance level of the difference": put(
            replies, "replace", lambda honest, one, **o: honest(one, **{k: v for k, v in o.items() if k != "chance"})
        ),
    },
    "continuations": {
        **{
            f"samples after {prefix}": put(
                stage_scores,
                "extraction",
                lambda honest, *words, prefix=prefix, prefix_tokens, **o: honest(
                    *words, prefix_tokens=prefix if o.get("samples") else prefix_tokens, **o
                ),
            )
            for prefix in ("carrier", "half")
        },
        **{
            f"{one} for {other}": put(
                stage_scores,
                "extraction",
                lambda honest, *words, one=one, other=other, prefix_tokens, **o: honest(
                    *words, prefix_tokens=one if prefix_tokens == other else prefix_tokens, **o
                ),
            )
            for one, other in (("carrier", "third"), ("third", "half"), ("half", "carrier"))
        },
        "samples at another temperature": put(
            stage_scores, "extraction", lambda honest, *words, **o: honest(*words, **o | {"temperature": 1.0})
        ),
        "samples counted, not their share": put(
            stage_scores, "_sampled", lambda honest, *words: [3 * share for share in honest(*words)]
        ),
        "samples of the next canary": put(
            stage_scores, "_sampled", lambda honest, *words: np.roll(honest(*words), 1).tolist()
        ),
        "a prefix of one token more": put(extract, "prefix_length", lambda honest, *words: honest(*words) + 1),
        "the whole text in the source design's prompt": put(source, "source_prefix", lambda honest, n: n),
        "another prefix of the source design": put(source, "source_prefix", lambda honest, n: n // 2),
        "twins are asked in place of members": put(
            stage_scores, "given_back", lambda honest, model, encoded: honest(model, encoded[::-1])
        ),
    },
    "thoughts": {
        "thoughts of the next canary": put(
            stage_scores, "with_thoughts", lambda honest, t, c, p, th: honest(t, c, p, [*th[1:], *th[:1]])
        ),
        "any thought": put(
            stage_scores,
            "with_thoughts",
            lambda honest, t, c, p, th: honest(t, c, p, th).assign(
                secret_in_thought=lambda table: table["thought"].notna()
            ),
        ),
    },
    "texts": {
        "score turned round": _turned,
        "secrets one character late": put(
            scored, "_with_space", lambda honest, text, start, end: honest(text, start + 1, end + 1)
        ),
        "secrets without what stands before them": put(
            scored,
            "texts_of",
            lambda honest, manifest: [
                replace(one, text=one.text[one.secret[0] - 1 :], secret=(1, 1 + one.secret[1] - one.secret[0]))
                for one in honest(manifest)
            ],
        ),
        "sides exchanged": put(
            scored, "texts_of", lambda honest, m: [replace(one, member=not one.member) for one in honest(m)]
        ),
        "every tier alike": _source_of(
            "exposure", lambda source: replace(source, options={k: v for k, v in source.options.items() if k != "tier"})
        ),
        "the highest in the place of the lowest": put(
            scored, "lowest_mean", lambda honest, values: float(np.sort(values)[-3:].mean())
        ),
        "exposures ranked from the other end": put(
            scored, "mean_exposure", lambda honest, members, twins: honest(-members, -twins)
        ),
        "half of the width of the AUC": put(scored, "auc_estimate", _narrow),
        "a threshold of another rate": put(
            scored, "tpr_estimate", lambda honest, members, twins, fpr: honest(members, twins, "0.05")
        ),
    },
    "ranks": {
        "one candidate left out": put(
            ranks,
            "candidates",
            lambda honest, canary, positions: (lambda h, e: (h, e[:-1]))(*honest(canary, positions)),
        ),
        "the last character alone": put(ranks, "candidates", lambda honest, canary, positions: honest(canary, 1)),
        "another candidate for the true one": put(
            ranks,
            "candidates",
            lambda honest, canary, positions: (lambda h, e: (h, [*e[1:], e[0]]))(*honest(canary, positions)),
        ),
        "a known part that begins one character late": put(
            ranks,
            "candidates",
            lambda honest, canary, positions: (lambda h, e: (h, [one[1:] for one in e]))(*honest(canary, positions)),
        ),
        "secrets scored from their second character on": put(
            ranks,
            "candidates",
            lambda honest, canary, positions: (lambda h, e: (h + e[0][:1], [one[1:] for one in e]))(
                *honest(canary, positions)
            ),
        ),
        "ranks counted from 0": put(
            ranks,
            "_row",
            lambda honest, canary, totals: honest(canary, totals) | {"rank": int((totals > totals[0]).sum())},
        ),
        "the unlikeliest first": put(ranks, "_row", lambda honest, canary, totals: honest(canary, -totals)),
        "natural logarithms": put(
            ranks,
            "_row",
            lambda honest, canary, totals: (
                lambda row: row | {"exposure_exact": row["exposure_exact"] * np.log(2)}
            )(honest(canary, totals)),
        ),
        "half of the width": put(membership, "bounded_mean", _narrow),
        "chance as among very many": put(membership, "even_rank_bits", lambda honest, places: 1 / np.log(2)),
    },
    "seeds": {
        "the median": put(
            seeds, "clustered_mean", lambda honest, data, of: replace(honest(data, of), value=float(np.median(data)))
        ),
        "half of the width": put(seeds, "clustered_mean", _narrow),
        "seeds up alone": put(
            seeds, "direction_consistency", lambda honest, v: replace(honest(v), value=float(np.mean(np.array(v) > 0)))
        ),
        "chance as of one of them": put(seeds, "agreement_by_chance", lambda honest, many: 0.5),
        "one seed lost": put(
            seeds, "combine_seeds", lambda honest, each, metric: honest({k: v for k, v in each.items() if k}, metric)
        ),
    },
    "power": {
        "one-sided": put(privacy_audit, "power_paired_t", lambda honest, *w, **o: honest(*w, level=0.1, **o)),
        "a power of 0.9": put(privacy_audit, "power_paired_t", lambda honest, *w, **o: honest(*w, power=0.9, **o)),
        "one pair more": put(
            privacy_audit,
            "power_paired_t",
            lambda honest, *w, **o: (
                found if (found := honest(*w, **o)).unit == "d" else replace(found, value=(found.value or 0) + 1)
            ),
        ),
        "half of the members": put(privacy_audit, "power_auc", lambda honest, n: honest(n=n // 2)),
    },
}  # fmt: skip


@pytest.mark.parametrize("part", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PARTS])
def test_nothing_is_wrong_with_sound_answers(part: str) -> None:
    assert PARTS[part]() == []


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        pytest.param(part, fault, marks=[pytest.mark.slow] * (part in SLOW))
        for part, faults in FAULTS.items()
        for fault in faults
    ],
)
def test_a_fault_in_a_known_answer_is_noticed(part: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[part][fault](monkeypatch)
    assert found_wrong(part, PARTS[part])


@pytest.mark.parametrize("part", sorted(set(PARTS) - SLOW - {"power", "continuations"}))
@pytest.mark.parametrize("fault", [*WIDTHS, *CHANCES, *COUNTS])
def test_what_is_misreported_of_a_known_answer_is_noticed(
    part: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault in CHANCES and part == "thoughts":
        pytest.skip("shares extracted have no chance level")
    (WIDTHS | CHANCES | COUNTS)[fault](monkeypatch)
    assert found_wrong(part, PARTS[part])


def test_known_replies_hold_every_kind_on_both_sides() -> None:
    canaries = known_canaries()
    prompts = [canary.carrier.rstrip() for canary in canaries]
    found = KnownReplies(canaries).generate(prompts)
    held = [canary.secret in (reply.answer or "") for canary, reply in zip(canaries, found, strict=True)]
    thought = [canary.secret in (reply.thought or "") for canary, reply in zip(canaries, found, strict=True)]
    for side in (slice(24), slice(24, None)):
        assert 0 < sum(held[side]) < len(held[side]) and 0 < sum(thought[side]) < len(thought[side])
    assert any(reply.answer is None for reply in found)
    assert KnownReplies(canaries).generate(prompts[::-1])[0].text == "another prompt"


@pytest.mark.slow
def test_known_scores_fails_where_a_known_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert present(known_scores(3).control).passed
    FAULTS["seeds"]["half of the width"](monkeypatch)
    assert not present(known_scores(3).control).passed
