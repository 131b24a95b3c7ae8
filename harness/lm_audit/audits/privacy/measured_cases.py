"""The cases of ``evals/test_privacy.py`` and where their evidence comes from. Imports neither torch nor pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lm_audit.audits.privacy.evidence.conclusions import stage_findings, step_findings
from lm_audit.audits.privacy.evidence.metric_sources import rows_for
from lm_audit.audits.privacy.stages.stage_names import STAGES, TRANSITIONS
from lm_audit.audits.privacy.stages.stage_option import manifest_path, parse_stages
from lm_audit.errors import DataError, UsageError
from lm_audit.evidence import Evidence
from lm_audit.shared.textfiles.remembering import content_stamp, remembered_by_content

if TYPE_CHECKING:
    from lm_audit.audits.measured_once import MeasuredOnce
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions
    from lm_audit.audits.privacy.stages.config import StagesConfig
    from lm_audit.plugin import RunOptions

METRIC_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "membership": ("roc_auc", "pr_auc", "tpr_at_"),
    "exposure": ("exposure",),
    "extraction": ("extraction.",),
    "epsilon": ("epsilon",),
    "stress": ("stability", "source.stability"),
    "source": ("source.",),
}
"""Family of metrics -> how the names of its metrics begin, after ``privacy.STAGE.``."""

FAMILY_FIGURES: Mapping[str, tuple[str, ...]] = {
    "membership": ("roc", "roc-log", "distributions"),
    "exposure": ("exposure",),
    "stress": ("stress",),
    "source": ("stage-table",),
}
FEWEST = 8
SEEDS = 3
EPSILONS = ("inf", "4", "1")


def chosen_stages(options: RunOptions) -> dict[str, str] | None:
    """Stages and specs of ``--stages``, None where the toy model is trained; checks the option and its manifest."""
    text, manifest = options.option("stages"), options.option("manifest")
    if text is None:
        if manifest is not None:
            raise UsageError(
                f"--manifest {manifest} does nothing without --stages; name the checkpoints, or leave it out"
            )
        return None
    path = manifest_path(manifest)
    stages = parse_stages(text)
    _readable_manifest(path)
    return stages


@remembered_by_content(maxsize=4)
def _readable_manifest(path: Path) -> None:
    """Refuse a damaged manifest at collection, before a model loads."""
    from lm_audit.audits.privacy.data.manifest import read_manifest

    read_manifest(path)


def stage_names(options: RunOptions) -> tuple[str, ...]:
    """The stages of this run."""
    stages = chosen_stages(options)
    return tuple(stages) if stages else STAGES


def transition_names(options: RunOptions) -> list[str]:
    """The transitions between the stages of this run."""
    known = stage_names(options)
    return [name for name, (before, after) in TRANSITIONS.items() if before in known and after in known]


def toy_config(options: RunOptions, seed: int | None = None) -> StagesConfig:
    """The four-stage demo on the toy model."""
    from lm_audit.audits.privacy.stages.config import StagesConfig

    return StagesConfig(seed=options.seed if seed is None else seed, device=options.device)


def canary_limit(most: int | None) -> int | None:
    """How many members, and how many twins, a limit leaves: never fewer than those with which the blind baseline, a
    control, can tell anything at its level of one in a thousand."""
    return None if most is None else max(FEWEST, most)


def scoring_options(options: RunOptions) -> ScoringOptions:
    """What to measure at the run's size."""
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions

    small = options.size == "smoke"
    return ScoringOptions(
        limit=canary_limit(options.items(None)),
        samples=4 if small else 32,
        exact_positions=1 if small else 2,
        seed=options.seed,
    )


def run_evidence(options: RunOptions, measured_once: MeasuredOnce) -> Evidence:
    """The audit of this run's stages, made once a session, and for the toy model once a config and code."""
    stages = chosen_stages(options)
    if stages is None:
        return toy_evidence(toy_config(options), scoring_options(options))
    from lm_audit.audits.measured_once import FileForm
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.files.evidence_file import load_evidence, save_evidence

    manifest, scoring, lenient = str(options.option("manifest")), scoring_options(options), len(stages) < len(STAGES)
    return measured_once(
        None,
        ("privacy", tuple(stages.items()), manifest, content_stamp(manifest), options.device, scoring),
        lambda: audit_stages(stages, manifest, device=options.device, options=scoring, lenient=lenient),
        form=FileForm(save_evidence, load_evidence),
    )


@lru_cache(maxsize=8)
def toy_evidence(config: StagesConfig, options: ScoringOptions) -> Evidence:
    """Train (or find) the toy stages and audit them; the evidence is kept beside the stages, for this code only."""
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.files.evidence_file import load_evidence, save_evidence
    from lm_audit.audits.privacy.stages.four_stages import run_stages
    from lm_audit.models.files.disk_cache import write_once

    stages = run_stages(config)
    folder = config.folder()

    def measure(draft: Path) -> None:
        manifest = folder / "manifest.jsonl"
        save_evidence(audit_stages(stages, manifest, device=config.device, options=options), draft)

    kept = folder / f"evidence-{_digest(options, config.device)}.json"
    try:
        return load_evidence(write_once(kept, measure))
    except DataError:  # damaged since it was written: what is kept only saves the time of measuring it again
        kept.unlink(missing_ok=True)
        return load_evidence(write_once(kept, measure))


def _digest(options: ScoringOptions, device: str) -> str:
    """Names what was measured, by which code and where: the last digits hang on the device and the threads."""
    import hashlib

    import torch

    from lm_audit.shared.code_version import code_version

    made_of = f"{code_version()} {sorted(vars(options).items())} {device} {torch.get_num_threads()}"
    return hashlib.sha256(made_of.encode()).hexdigest()[:12]


def stage_slice(evidence: Evidence, stage: str, family: str) -> Evidence:
    """One stage and one family of metrics as evidence of its own; the stage leaves the metric's name (the case has
    it).
    """
    prefix = f"privacy.{stage}."
    part = Evidence(
        "privacy", parameters={"stage": stage} | _shared_parameters(evidence), code_version=evidence.code_version
    )
    for name, estimate in evidence.metrics.items():
        short = name.removeprefix(prefix)
        if short != name and short.startswith(METRIC_FAMILIES[family]) and not _elsewhere(short, family):
            part.metric(f"privacy.{short}", estimate, evidence.sources.get(name))
    rows = [row for row in evidence.rows if row["stage"] == stage]
    part.extend_rows(rows if family == "membership" else rows_for(part.sources.values(), rows))
    if stage == last_stage(evidence):
        part.figures.extend(f for f in evidence.figures if f.name in FAMILY_FIGURES.get(family, ()))
    part.headline = next(iter(part.metrics), None)
    bound = part.metrics.get("privacy.epsilon")
    if bound is not None and bound.value is None:
        part.notes.append(f"privacy.epsilon can reach no verdict here: {bound.note}")
    if family == "exposure" and not any(name.startswith("privacy.exposure_exact.") for name in part.metrics):
        part.notes.append("No exposure among all secrets of the form: nothing says which characters these end in.")
    part.finding(*stage_findings(part, stage))
    return part


def stage_slices(evidence: Evidence, stage: str, families: Sequence[str]) -> list[Evidence]:
    """Several families of one stage, for one case: each row stands in the first of them that has it."""
    parts, seen = [stage_slice(evidence, stage, family) for family in families], set[str]()
    for part in parts:
        part.rows = [row for row in part.rows if row["item"] not in seen]
        seen |= {row["item"] for row in part.rows}
    return parts


def _elsewhere(name: str, family: str) -> bool:
    """Whether a longer prefix of another family claims the metric."""
    return family == "source" and name == "source.stability"


def last_stage(evidence: Evidence) -> str:
    """The last stage of the evidence, whose case carries the figures that show all stages."""
    return [stage for stage in STAGES if f"privacy.{stage}.roc_auc" in evidence.metrics][-1]


def transition_slice(evidence: Evidence, transition: str) -> Evidence:
    """One transition: the primary figure and its p-value, the canaries of both stages as rows, and a table of every
    metric's change.
    """
    from lm_audit.audits.privacy.evidence.figures import changes_table

    prefix = f"privacy.{transition}."
    part = Evidence(
        "privacy",
        parameters={"transition": transition} | _shared_parameters(evidence),
        code_version=evidence.code_version,
    )
    for name, estimate in evidence.metrics.items():
        if name.startswith(prefix):
            part.metric(f"privacy.{name.removeprefix(prefix)}", estimate, evidence.sources.get(name))
    part.extend_rows(rows_for(part.sources.values(), evidence.rows))
    part.figures.append(changes_table(transition, evidence.parameters["attribution"]))
    part.notes.extend(evidence.notes)
    part.headline = "privacy.did"
    part.finding(*step_findings(part, transition, "privacy.did"))
    return part


def _shared_parameters(evidence: Evidence) -> dict[str, object]:
    return {key: value for key, value in evidence.parameters.items() if key != "attribution"}


def blind_slice(evidence: Evidence) -> Evidence:
    """The blind baseline with its verdict as a negative control, and what this many canaries can show."""
    part = Evidence(
        "privacy",
        parameters=_shared_parameters(evidence),
        control=evidence.control,
        code_version=evidence.code_version,
    )
    for name, estimate in evidence.metrics.items():
        if name == "privacy.blind_baseline" or name.startswith("privacy.power."):
            part.metric(name, estimate, evidence.sources.get(name))
    part.extend_rows(rows_for(part.sources.values(), evidence.rows))
    part.headline = "privacy.blind_baseline"
    return part
