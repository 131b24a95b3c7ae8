"""audit_stages: score the four stages with one manifest and say what each of them leaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from lm_audit.audits.privacy.attribution.changes import PRIMARY
from lm_audit.audits.privacy.attribution.directions import better
from lm_audit.audits.privacy.data.corpus import verify_training_files
from lm_audit.audits.privacy.data.limiting import limited
from lm_audit.audits.privacy.data.manifest import Manifest, read_manifest
from lm_audit.audits.privacy.data.prepare import comparison_documents
from lm_audit.audits.privacy.evidence.conclusions import stage_findings, step_findings
from lm_audit.audits.privacy.evidence.metric_sources import INSTABILITY, did_source, stage_source
from lm_audit.audits.privacy.measure.blind import blind_baseline
from lm_audit.audits.privacy.measure.membership import epsilon_bound, exposure_by_tier, exposures, membership
from lm_audit.audits.privacy.measure.source_columns import source_metrics
from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions, StageScores, score_stage
from lm_audit.audits.privacy.stages.four_stages import OnMessage
from lm_audit.audits.privacy.stages.stage_inputs import stage_spec
from lm_audit.audits.privacy.stages.stage_names import PRIMARY_TRANSITION, STAGES, TRANSITIONS
from lm_audit.audits.second_opinion import held_by_its_rows
from lm_audit.errors import DataError, UsageError
from lm_audit.evidence import Control, Evidence
from lm_audit.shared.former_names import former_arguments
from lm_audit.sources import content_digest
from lm_audit.stats import Estimate, bounded_mean, mean_interval, power_auc, power_paired_t

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

StageSource = Union[str, Path, "LanguageModel"]
VERSION = 1


@former_arguments(report="on_message")
def audit_stages(
    stages: Mapping[str, StageSource],
    manifest: Manifest | Path | str,
    *,
    device: str = "auto",
    options: ScoringOptions | None = None,
    documents: int | None = None,
    lenient: bool = False,
    verify: bool = True,
    on_message: OnMessage | None = None,
) -> Evidence:
    """Evidence of all stages: their metrics, one row a canary and stage, and the primary figure of the last transition.

    ``stages`` maps stage keys to model specs, stage folders or models. Before any model loads, every member is looked
    for in the training file and every held-out twin must be absent from it (``verify``). Where the untouched base
    model tells members from twins, the evidence carries a failed control and no stage is judged. ``documents``
    ordinary training texts (default: as many as members) serve the source design's columns. Raises ``DataError`` for
    a training file that does not fit the manifest, or a missing stage unless ``lenient``; ``UsageError`` for an
    unknown stage.
    """
    canaries = read_manifest(Path(manifest)) if isinstance(manifest, str | Path) else manifest
    _check_stages(stages, canaries, lenient)
    if verify:
        verify_training_files(canaries)
    canaries = limited(canaries, (options or ScoringOptions()).limit, seed=(options or ScoringOptions()).seed)
    ordinary = comparison_documents(canaries, len(canaries.members) if documents is None else documents)
    scored = score_stages(stages, canaries, ordinary, device=device, options=options, on_message=on_message)
    return evidence_of(scored, canaries, options or ScoringOptions())


def _check_stages(stages: Mapping[str, StageSource], manifest: Manifest, lenient: bool) -> None:
    if unknown := [stage for stage in stages if stage not in STAGES]:
        raise UsageError(f"unknown stage {unknown[0]!r}; stages are {', '.join(STAGES)}")
    missing = [stage for stage in STAGES if stage not in stages]
    if missing and (not lenient or "base" in missing):
        raise DataError(f"stages {', '.join(missing)} are missing; give them, or use the lenient mode (base is needed)")
    if len(manifest.members) < 2 or len(manifest.controls) < 2:
        found = f"{len(manifest.members)} members and {len(manifest.controls)} held-out twins"
        raise DataError(f"an audit needs at least 2 members and 2 held-out twins, the manifest has {found}")


def score_stages(
    stages: Mapping[str, StageSource],
    manifest: Manifest,
    documents: Sequence[str],
    *,
    device: str = "auto",
    options: ScoringOptions | None = None,
    on_message: OnMessage | None = None,
) -> dict[str, StageScores]:
    """Scores of each stage in order, one model in memory at a time; later stages are calibrated by the base."""
    found: dict[str, StageScores] = {}
    for stage in STAGES:
        if stage not in stages:
            continue
        if on_message is not None:
            on_message(f"{stage}: scoring")
        model = load_stage(stages[stage], device)
        found[stage] = score_stage(model, stage, manifest, documents, reference=found.get("base"), options=options)
    return found


def load_stage(source: StageSource, device: str) -> LanguageModel:
    """The model of a stage in float32: low-precision scores would hide small effects."""
    if not isinstance(source, str | Path):
        return source
    from lm_audit.models import load_model

    return load_model(stage_spec(source), device=device, dtype="float32")


def evidence_of(scored: Mapping[str, StageScores], manifest: Manifest, options: ScoringOptions) -> Evidence:
    """The evidence made of the stages' scores."""
    evidence = Evidence("privacy", parameters=_parameters(scored, manifest, options))
    blind = blind_evidence(scored["base"], manifest)
    evidence.metric("privacy.blind_baseline", blind.metrics["privacy.blind_baseline"], stage_source("base", "roc_auc"))
    evidence.control = blind.control
    evidence.notes += blind.notes
    for scores in scored.values():
        evidence.extend_rows(stage_rows(scores))
        for name, estimate in stage_metrics(scores, manifest, options.seed).items():
            evidence.metric(f"privacy.{scores.stage}.{name}", estimate, stage_source(scores.stage, name))
    if blind.control is not None and blind.control.passed:
        record_attribution(evidence)
    for stage in scored:
        evidence.finding(*stage_findings(evidence, stage, f"privacy.{stage}."))
    for transition in TRANSITIONS:
        evidence.finding(*step_findings(evidence, transition, f"privacy.{transition}.did"))
    record_power(evidence, manifest)
    from lm_audit.audits.privacy.evidence.figures import privacy_figures

    evidence.figures.extend(privacy_figures(scored, evidence))
    return evidence


def stage_metrics(scores: StageScores, manifest: Manifest, seed: int) -> dict[str, Estimate]:
    """Every metric of one stage by its short name."""
    found = membership(scores, seed=seed) | exposure_by_tier(scores) | extraction_metrics(scores)
    found["epsilon"] = epsilon_bound(scores, manifest.assignment)
    for name, value in source_metrics(scores).items():
        found[f"source.{name}"] = _plain(value, name, len(scores.of("member")))
    if len(scores.stress):
        found |= stability_metrics(scores)
    return found


def extraction_metrics(scores: StageScores) -> dict[str, Estimate]:
    """Share of members (and of twins: the false positives) that come back exactly, for each prefix."""
    from lm_audit.stats import clopper_pearson

    found = {}
    for role in ("member", "control"):
        table = scores.of(role)
        for prefix in ("carrier", "third", "half"):
            rate = clopper_pearson(int(table[f"extracted_{prefix}"].sum()), len(table))
            fields = {name: getattr(rate, name) for name in Estimate.__slots__} | {"better": "lower", "unit": "share"}
            found[f"extraction.{role}.{prefix}"] = Estimate(**fields)
    members = scores.of("member")
    if "secret_in_thought" in members:
        rate = clopper_pearson(int(members["secret_in_thought"].sum()), len(members))
        found["extraction.in_thought"] = replace(rate, better="lower", unit="share")
    if "sampled_hits" in members:
        mean = bounded_mean(np.asarray(members["sampled_hits"], dtype=np.float64))
        method = f"mean share of sampled continuations over canaries, {mean.method}"
        found["extraction.sampled"] = replace(mean, method=method, unit="share", better="lower")
    return found


def stability_metrics(scores: StageScores) -> dict[str, Estimate]:
    """How steady a canary's scores are over prompt variants, by the stage's own score and by the source design's."""
    found = {}
    for name, column in (("stability", "span_mean_logprob"), ("source.stability", "source_last_token_logprob")):
        method = f"1 - mean over canaries of |sd / mean| of {column} over prompt variants"
        spreads = instability_by_canary(scores, column)
        if spreads is None:
            found[name] = Estimate.not_estimable("a canary's mean over variants is 0", method=method, better="neither")
            continue
        mean = mean_interval(list(spreads.values()), n_resamples=1999, seed=0)
        value, low, high = (None if end is None else 1 - min(end, 1.0) for end in (mean.value, mean.high, mean.low))
        method = f"{method}, {mean.method}"
        found[name] = replace(mean, value=value, low=low, high=high, method=method, unit="share", better="neither")
    return found


def instability_by_canary(scores: StageScores, column: str) -> dict[str, float] | None:
    """|sd / mean| of a column over the prompt variants of each canary; None where a mean is 0."""
    from lm_audit.audits.privacy.measure.stress import instabilities

    table = scores.stress.pivot(index="canary_id", columns="variant", values=column)
    spreads = instabilities(table.to_numpy().tolist())
    return None if spreads is None else dict(zip(map(str, table.index), spreads, strict=True))


def stage_rows(scores: StageScores) -> list[dict[str, Any]]:
    """Evidence rows of one stage: canaries, then ordinary documents (their text stays out)."""
    table = scores.canaries.drop(columns=["text"])
    ids = [str(name) for name in scores.of("member")["canary_id"]]
    added: dict[str, Mapping[str, float | None]] = {"exposure": dict(zip(ids, exposures(scores), strict=True))}
    for name, column in (("stability", "span_mean_logprob"), ("source.stability", "source_last_token_logprob")):
        if len(scores.stress):
            added[INSTABILITY[name]] = instability_by_canary(scores, column) or {}
    rows: list[dict[str, Any]] = []
    texts = dict(zip(map(str, scores.canaries["canary_id"]), scores.canaries["text"], strict=True))
    for record in table.to_dict("records"):
        canary = str(record["canary_id"])
        row = {"item": f"{scores.stage}/{canary}", "stage": scores.stage, **_clean(record)}
        row["content"] = content_digest(texts[canary])
        rows.append(row | {name: values.get(canary) for name, values in added.items()})
    for number, record in enumerate(scores.documents.to_dict("records")):
        item = f"{scores.stage}/document-{number:05d}"
        plain = _clean({key: value for key, value in record.items() if key != "text"})
        content = content_digest(record.get("text"))
        rows.append({"item": item, "content": content, "stage": scores.stage, "role": "document", **plain})
    return rows


def _clean(row: Mapping[object, object]) -> dict[str, Any]:
    return {str(key): _plain_value(value) for key, value in row.items()}


def _plain_value(value: object) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _plain(value: float | None, name: str, n: int) -> Estimate:
    method = "the source design's formula, for comparison"
    if value is None:
        return Estimate.not_estimable("no ordinary documents or no generation in this run", method=method)
    return Estimate(value, n=n, confidence=None, method=method, better=better(name))


def blind_evidence(base: StageScores, manifest: Manifest) -> Evidence:
    """The blind baseline as a negative control: what the untouched base model says of members and twins."""
    blind = blind_baseline(base)
    evidence = Evidence("privacy", rows=stage_rows(base))
    evidence.metric("privacy.blind_baseline", blind.auc, stage_source(base.stage, "roc_auc"))
    evidence.control = Control(
        "negative",
        passed=blind.verdict != "refuse",
        expected="the untouched base model does not tell members from held-out twins",
        observed=blind.reason,
    )
    if blind.verdict == "warn":
        evidence.notes.append(f"Blind baseline: {blind.reason}")
    asked = [({"role": "member"}, len(manifest.members)), ({"role": "control"}, len(manifest.controls))]
    return held_by_its_rows(evidence, counts=asked)


def record_attribution(evidence: Evidence, n_resamples: int = 1999) -> None:
    """What each training step changed, from the evidence's rows of the stages before and after it."""
    from lm_audit.audits.privacy.attribution.transitions import attribute_leak, identical_variants

    if identical_variants(evidence):
        evidence.notes.append(
            "Stages 2a and 2b score every canary the same: one was not trained, or one was loaded twice"
        )
    table = attribute_leak(evidence, lenient=True, n_resamples=n_resamples)
    changes = [_clean(row) for row in table.to_dict("records")]
    evidence.parameters["attribution"] = changes
    for row in changes:
        if row["metric"] != PRIMARY:
            continue
        name = f"privacy.{row['transition']}.did"
        evidence.metric(name, _did_estimate(row), did_source(row["transition"]))
        evidence.metric(f"{name}.p", _p_estimate(row))
        if row["transition"] == PRIMARY_TRANSITION:
            evidence.headline = name


def _did_estimate(row: Mapping[str, Any]) -> Estimate:
    method = "difference in differences of the secret's mean log-probability, symmetric bootstrap-t"
    note = f"members changed by {row['before']:+.3f}, twins by {row['after']:+.3f} nats a token"
    effect = None if row["effect"] is None else f"d = {row['effect']}"
    note = "; ".join(filter(None, (note, effect, row["note"])))
    fields: dict[str, Any] = {"unit": "nats", "better": "lower", "chance": 0.0, "note": note}
    return Estimate(row["delta"], row["low"], row["high"], n=int(row["n"]), method=method, **fields)


def _p_estimate(row: Mapping[str, Any]) -> Estimate:
    method = "bootstrap-t test of equal changes, spreads may differ"
    if row["p"] is None:
        return Estimate.not_estimable(
            row["note"] or "no test", n=int(row["n"]), confidence=None, method=method, unit="p"
        )
    return Estimate(row["p"], n=int(row["n"]), confidence=None, method=method, unit="p")


def record_power(evidence: Evidence, manifest: Manifest) -> None:
    """What this number of canaries can show at 80% power, and how many a small, medium and large effect would need."""
    evidence.metric("privacy.power.detectable_d", power_paired_t(n=len(manifest.members)))
    for effect in (0.2, 0.5, 0.8):
        evidence.metric(f"privacy.power.canaries_for_d{effect}", power_paired_t(effect))
    evidence.metric("privacy.power.detectable_auc", power_auc(n=len(manifest.members)))


def _parameters(scored: Mapping[str, StageScores], manifest: Manifest, options: ScoringOptions) -> dict[str, Any]:
    return {
        "version": VERSION,
        "seed": options.seed,
        "members": len(manifest.members),
        "controls": len(manifest.controls),
        "assignment": manifest.assignment,
        "manifest_sha256": manifest.sha256,
        "dtype": "float32",
        "fingerprints": {stage: scores.fingerprint for stage, scores in scored.items()},
        "options": dict(vars(options)),
    }
