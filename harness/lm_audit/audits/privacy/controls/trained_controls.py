"""Controls with a planted answer: canaries repeated often must be found, canaries that were never trained on must
not.

Both look at one small model of their own, trained until it has memorised its canaries, so that they say the same of
whatever checkpoints are audited.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean, stdev, variance
from typing import TYPE_CHECKING, Any

from lm_audit.audits.privacy.controls.known_stability import wrong_of_known_stability
from lm_audit.audits.privacy.controls.other_formulas import (
    perplexity,
    perplexity_ratio,
    steadiness,
    wrong_epsilon,
    wrongly_calibrated,
)
from lm_audit.audits.privacy.controls.plain_scores import unsound
from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.evidence.metric_sources import INSTABILITY, MEMBER, TWIN, stage_source
from lm_audit.audits.privacy.measure.blind import LEVEL, Separation, separation
from lm_audit.audits.privacy.measure.membership import sides
from lm_audit.audits.second_opinion import found_wrong, held_by_its_rows, misreported
from lm_audit.errors import ModelError
from lm_audit.evidence import Control, Evidence
from lm_audit.sources import MetricSource
from lm_audit.sources.record import Where
from lm_audit.stats import Estimate, clopper_pearson, mean_exposure

if TYPE_CHECKING:
    from lm_audit.audits.privacy.measure.stage_scores import StageScores
    from lm_audit.models import LanguageModel

MEMBERS, TWINS, FRESH = 16, 200, 200
"""Planted canaries, held-out twins, and canaries that only pretend to be members."""

MEMORISED = 0.1
"""The planted model is trained until the worst of its secrets costs at most this, in nats a token."""

MOST_STEPS = 600
OFTEN = 16

BEFORE, AFTER, STEP = "base", "sft", "Base_to_SFT"
"""Stages and step as which the untouched and the planted model go through the audit's own figures."""

RESAMPLES = 399
"""Of the step's changes; the one that is looked at has five times as many."""

SAMPLED, DOCUMENTS = 2, 12
"""Continuations drawn a planted canary, and twins that stand for ordinary documents beside them."""
_SEED = 7_000_003
"""Added to the seed, so that the planted canaries are others than those of the audit."""

COLUMN = "span_mean_logprob"


@dataclass(frozen=True, eq=False)
class PlantedMemory:
    """A model that has memorised ``planted`` and saw none of the others; how many steps that took."""

    model: LanguageModel
    planted: tuple[Canary, ...]
    twins: tuple[Canary, ...]
    pretended: tuple[Canary, ...]
    steps: int
    loss: float


@lru_cache(maxsize=1)
def planted_memory(seed: int = 0) -> PlantedMemory:
    """A copy of ``tiny``, trained on 16 canaries until the worst secret costs at most 0.1 nats a token.

    Raises ``ModelError`` where 600 steps do not reach that.
    """
    from lm_audit.models.toy.tiny_model import tiny_model

    planted, others = _drawn(seed)
    base = tiny_model(0)
    module, steps, loss = memorise(base, planted, seed=seed)
    from lm_audit.models import LanguageModel

    model = LanguageModel(module, base.tokenizer, name="tiny-planted")
    return PlantedMemory(model, planted, others[:TWINS], others[TWINS:], steps, loss)


def _drawn(seed: int) -> tuple[tuple[Canary, ...], tuple[Canary, ...]]:
    """Planted canaries, no two with one carrier (whose first character nobody could then foretell), and all others."""
    drawn = generate_canaries(2 * MEMBERS + TWINS + FRESH, seed=seed + _SEED)
    carriers = {canary.carrier: canary for canary in reversed(drawn)}
    planted = [canary for canary in drawn if carriers[canary.carrier] is canary][:MEMBERS]
    others = [replace(canary, role="control", repetitions=0) for canary in drawn if canary not in planted]
    return tuple(replace(canary, repetitions=OFTEN) for canary in planted), tuple(others[: TWINS + FRESH])


def memorise(base: LanguageModel, canaries: Sequence[Canary], *, seed: int) -> tuple[Any, int, float]:
    """(trained copy of the module, steps, worst secret's nats a token), until that is at most 0.1."""
    import torch

    from lm_audit.audits.privacy.training.batches import end_ids, pad, token_nll
    from lm_audit.models.scoring.requests import default_bos
    from lm_audit.models.text.token_spans import encode_texts
    from lm_audit.models.toy.training import Trainer, TrainingSettings, one_thread, training_mode

    module, tokenizer = copy.deepcopy(base.module), base.tokenizer
    head, encoded = default_bos(tokenizer), encode_texts(tokenizer, [canary.text for canary in canaries])
    ids, mask = pad([(*head, *item.ids, *end_ids(tokenizer)) for item in encoded], base.device)
    secret = torch.zeros_like(mask)
    for row, (item, canary) in enumerate(zip(encoded, canaries, strict=True)):
        secret[row, [len(head) + place for place in item.tokens_in(canary.secret_span)]] = True
    settings = TrainingSettings(epochs=1, lr=3e-3, batch_size=len(canaries), warmup_steps=10, final_share=1.0)
    trainer = Trainer(module, settings, MOST_STEPS)
    with one_thread(), training_mode(module), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for step in range(MOST_STEPS + 1):
            costs = token_nll(module, ids, mask)
            worst = float(((costs.detach() * secret[:, 1:]).sum(1) / secret[:, 1:].sum(1)).max())
            if worst <= MEMORISED:
                return module, step, worst
            trainer.step(costs.sum() / mask[:, 1:].sum())
    raise ModelError(
        f"the planted model did not memorise its canaries in {MOST_STEPS} steps: the worst secret costs {worst:.3f} "
        f"nats a token, {MEMORISED} at most were wanted"
    )


def often_repeated(seed: int = 0) -> Evidence:
    """Positive control: what was memorised is found, by its AUC, its exposure and by extraction."""
    memory = planted_memory(seed)
    before = score_before(memory)
    scores = score_planted(memory, before)
    faults = unsound(scores, memory.model, [*memory.planted, *memory.twins], COLUMN)
    faults += step_misreported(before, scores)
    faults += found_wrong("the stability of scores known beforehand", wrong_of_known_stability)
    return judge_planted(scores, memory, [*faults, *wrong_epsilon(scores)])


def never_trained(seed: int = 0) -> Evidence:
    """Negative control: canaries that pretend to be members look like the twins to a model that memorised others."""
    memory = planted_memory(seed)
    pretended = [replace(canary, role="member", repetitions=1) for canary in memory.pretended]
    canaries = [*pretended, *memory.twins]
    scores = _scores(memory.model, canaries)
    faults = unsound(scores, memory.model, canaries, COLUMN)
    return judge_pretended(scores, memory, [*faults, *stage_misreported(scores)])


def score_planted(memory: PlantedMemory, before: StageScores | None = None) -> StageScores:
    """The audit's own scores of the planted canaries and their twins: all that it measures of a stage."""
    return _scores(memory.model, [*memory.planted, *memory.twins], AFTER, before, whole=True)


def score_before(memory: PlantedMemory) -> StageScores:
    """The same canaries under the model that was not trained on them."""
    from lm_audit.models.toy.tiny_model import tiny_model

    return _scores(tiny_model(0), [*memory.planted, *memory.twins], BEFORE)


def _scores(
    model: LanguageModel,
    canaries: Sequence[Canary],
    stage: str = "control",
    before: StageScores | None = None,
    *,
    whole: bool = False,
) -> StageScores:
    from lm_audit.audits.privacy.measure import stage_scores

    options = stage_scores.ScoringOptions(source_extraction=whole, stress=whole, samples=SAMPLED if whole else 0)
    documents = [canary.text for canary in canaries if canary.role == "control"][:DOCUMENTS] if whole else ()
    manifest = Manifest(tuple(canaries), seed=0)
    return stage_scores.score_stage(model, stage, manifest, documents, reference=before, options=options)


def stage_misreported(scores: StageScores) -> list[str]:
    """What the audit reports of a stage with these scores and does not follow from its rows."""
    from lm_audit.audits.privacy.audit import stage_metrics, stage_rows

    whole = Evidence("privacy", rows=stage_rows(scores))
    for name, estimate in stage_metrics(scores, Manifest((), seed=0), 0).items():
        whole.metric(f"privacy.{scores.stage}.{name}", estimate, stage_source(scores.stage, name))
    return misreported(whole)


def step_misreported(before: StageScores, after: StageScores) -> list[str]:
    """What the audit reports of two stages and of the step between them and does not follow from their rows, or is not
    what a model that has memorised its canaries, and one that has not, must show."""
    from lm_audit.audits.privacy.audit import record_attribution, stage_metrics, stage_rows

    whole = Evidence("privacy", rows=[*stage_rows(before), *stage_rows(after)], parameters={"seed": 0})
    for scores in (before, after):
        for name, estimate in stage_metrics(scores, Manifest((), seed=0), 0).items():
            whole.metric(f"privacy.{scores.stage}.{name}", estimate, stage_source(scores.stage, name))
    record_attribution(whole, RESAMPLES)
    columns = {"stability": "span_mean_logprob", "source.stability": "source_last_token_logprob"}
    values = {f"privacy.{AFTER}.{name}": max(0.0, steadiness(after, column)) for name, column in columns.items()}
    values |= {
        f"privacy.{AFTER}.source.PPL_Ratio": perplexity_ratio(after),
        f"privacy.{AFTER}.source.Canary_PPL": perplexity(after, "member"),
    }
    # The mean of what one column holds, less the others: its interval is known then. The other one is cut off at 0.
    steady = MetricSource.mean(INSTABILITY["stability"], {"stage": AFTER} | MEMBER, scale=-1.0, offset=1.0)
    instead = {f"privacy.{AFTER}.stability": steady}
    faults = [*misreported(whole, values=values, instead=instead), *wrong_step(whole.metrics, f"privacy.{STEP}.did")]
    return [*faults, *wrong_changes(whole), *wrongly_calibrated(before, after)]


CHANGED = {"secret_logprob": COLUMN, "Avg_LogProb": "mean_logprob", "Canary_PPL": "ppl"}
"""Of the table of changes so many are held: the rows' column by the metric."""


def wrong_changes(whole: Evidence) -> list[str]:
    """What the table of changes says of a step and is not so: means of the members and the AUC at either stage are
    counted from the rows, and memorising raises every risk.
    """
    table = {row["metric"]: row for row in whole.parameters.get("attribution", ())}
    values = {
        (stage, role, column): [row[column] for row in whole.rows if row["stage"] == stage and row["role"] == role]
        for stage in (BEFORE, AFTER)
        for role in ("member", "control")
        for column in CHANGED.values()
    }
    known = {
        metric: [math.fsum(some) / len(some) for some in (values[stage, "member", column] for stage in (BEFORE, AFTER))]
        for metric, column in CHANGED.items()
    }
    known["twin_ROC_AUC"] = [
        _auc(values[stage, "member", COLUMN], values[stage, "control", COLUMN]) for stage in (BEFORE, AFTER)
    ]
    faults = []
    for metric, column in CHANGED.items():
        members, twins = (
            [
                after - before
                for before, after in zip(values[BEFORE, role, column], values[AFTER, role, column], strict=True)
            ]
            for role in ("member", "control")
        )
        faults += _wrong_effects(table.get(metric, {}), members, twins)
    for metric, (first, last) in known.items():
        row = table.get(metric)
        if row is None:
            faults.append(f"the table of changes lacks {metric}")
        elif not (_same(row["before"], first) and _same(row["after"], last)):
            faults.append(
                f"{metric} goes from {row['before']:.4g} to {row['after']:.4g}, not {first:.4g} to {last:.4g}"
            )
        elif (
            not _same(row["delta"], last - first)
            or None in (row["low"], row["high"])
            or not row["low"] <= row["delta"] <= row["high"]
        ):
            faults.append(
                f"{metric} changes by {row['delta']:.4g} ({row['low']} to {row['high']}), not {last - first:.4g}"
            )
        elif metric in CHANGED and row["more_risk"] is not True:
            faults.append(f"{metric} is said to show no more risk")
    return faults


def _wrong_effects(row: Mapping[str, Any], members: Sequence[float], twins: Sequence[float]) -> list[str]:
    """Standardised changes and counts of signs that are not those of the canaries' changes, which must spread."""
    if not variance(members) > 0:
        return [f"{row.get('metric')}: all members changed by {members[0]:.4g}"]
    apart = fmean(members) - fmean(twins)
    pooled = ((len(members) - 1) * variance(members) + (len(twins) - 1) * variance(twins)) / (
        len(members) + len(twins) - 2
    )
    known = {
        "d_z": fmean(members) / stdev(members),
        "effect": apart / pooled**0.5,
        "against_twins": apart,
        "positive": sum(one > 0 for one in members),
        "negative": sum(one < 0 for one in members),
    }
    return [
        f"{row.get('metric')} has a {name} of {row.get(name)}, not {value:.4g}"
        for name, value in known.items()
        if not _same(row.get(name), value)
    ]


def _same(found: float | None, known: float) -> bool:
    return found is not None and abs(found - known) <= 1e-9 * (1 + abs(known))


def _auc(members: Sequence[float], twins: Sequence[float]) -> float:
    won = sum((member > twin) + (member == twin) / 2 for member in members for twin in twins)
    return won / (len(members) * len(twins))


def wrong_step(metrics: Mapping[str, Estimate], name: str) -> list[str]:
    """A step in which the secrets were memorised, of which it is said that they were not."""
    found, p = metrics.get(name), metrics.get(f"{name}.p")
    if found is None or p is None or found.low is None or p.value is None:
        return [f"{name} has no interval or no p-value"]
    faults = [] if found.low > 0 else [f"{name} does not lie above 0: {_interval(found)} nats"]
    # Both come from one bootstrap distribution.
    return faults if (p.value < 0.05) == (found.low > 0) else [*faults, f"{name}.p is {p.value:.3g}"]


def judge_planted(scores: StageScores, memory: PlantedMemory, faults: Sequence[str] = ()) -> Evidence:
    """Found: AUC above 1/2 at one in a thousand; exposure above chance; more members extracted than twins.

    ``faults``: what is wrong with the scores as such; the control then fails whatever they say.
    """
    members, twins = sides(scores, COLUMN)
    found, bits = separation(members, twins), mean_exposure(-members, -twins)
    hits = {role: scores.of(role)["extracted_third"] for role in ("member", "control")}
    extracted, false = (clopper_pearson(int(column.sum()), len(column)) for column in hits.values())
    passed = {
        f"AUC {_number(found.auc.value)} (p = {_number(found.p.value)})": found.shown and (found.auc.value or 0) > 0.5,
        f"exposure {_interval(bits)} bits": bits.low is not None and bits.low > (bits.chance or 0.0),
        f"extracted {_interval(extracted)} of members, {_interval(false)} of twins": _above(extracted, false),
    }
    evidence = _evidence(found, memory, scores)
    bits_source = MetricSource.members("exposure", COLUMN, MEMBER, TWIN)
    evidence.metric("privacy.control_exposure", replace(bits, better="higher"), bits_source)
    rate_source = MetricSource.mean("extracted_third", MEMBER)
    evidence.metric("privacy.control_extraction", replace(extracted, better="higher"), rate_source)
    expected = (
        f"{MEMBERS} canaries that were memorised have an AUC above 1/2 (p < {LEVEL}), an exposure above chance "
        f"({_number(bits.chance)} bits), and come back from a third of their secrets more often than their twins"
    )
    told = [*(f"{text}: {'found' if good else 'NOT FOUND'}" for text, good in passed.items()), *faults]
    evidence.control = Control("positive", all(passed.values()) and not faults, expected, "; ".join(told))
    return held_by_its_rows(evidence, counts=_asked(MEMBERS))


def judge_pretended(scores: StageScores, memory: PlantedMemory, faults: Sequence[str] = ()) -> Evidence:
    """Silent: the AUC does not differ from 1/2 at the level of one in a thousand (by 0.1 or more); ``faults`` as in
    :func:`judge_planted`.
    """
    found = separation(*sides(scores, COLUMN))
    evidence = _evidence(found, memory, scores)
    silent = found.auc.value is not None and found.p.value is not None and not found.shown
    expected = f"{FRESH} canaries that no training file held are not told from {TWINS} others (p >= {LEVEL})"
    observed = [f"AUC {_number(found.auc.value)} (p = {_number(found.p.value)})", found.reach, *faults]
    evidence.control = Control("negative", silent and not faults, expected, "; ".join(observed))
    return held_by_its_rows(evidence, counts=_asked(FRESH))


def _asked(members: int) -> list[tuple[Where, int]]:
    return [(MEMBER, members), (TWIN, TWINS)]


def _evidence(found: Separation, memory: PlantedMemory, scores: StageScores) -> Evidence:
    parameters = {"members": MEMBERS, "steps": memory.steps, "worst_secret_nats": round(memory.loss, 4)}
    evidence = Evidence("privacy", headline="privacy.control_auc", parameters=parameters)
    table = scores.canaries.rename(columns={"canary_id": "item"})
    evidence.extend_rows(table[["item", "role", COLUMN, "extracted_third"]].to_dict("records"))  # type: ignore[arg-type]
    source = MetricSource.members("auc", COLUMN, MEMBER, TWIN)
    evidence.metric("privacy.control_auc", replace(found.auc, better=None), source)
    evidence.metric("privacy.control_auc.p", found.p)
    evidence.notes.append(f"The planted model memorised its canaries in {memory.steps} steps.")
    return evidence


def _above(first: Estimate, second: Estimate) -> bool:
    return first.low is not None and second.high is not None and first.low > second.high


def _interval(estimate: Estimate) -> str:
    return f"{_number(estimate.value)} [{_number(estimate.low)}, {_number(estimate.high)}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
