"""``--stages base=SPEC,sft=SPEC,...``: checkpoints that somebody else trained."""

from __future__ import annotations

from pathlib import Path

from lm_audit.audits.privacy.stages.stage_names import STAGES
from lm_audit.errors import DataError, ModelError, UsageError
from lm_audit.shared.textfiles import readable_file


def parse_stages(text: str) -> dict[str, str]:
    """Stage key to spec, in the order of the stages; ``UsageError`` for an unknown, repeated or missing stage."""
    found: dict[str, str] = {}
    for part in text.split(","):
        stage, separator, spec = (piece.strip() for piece in part.partition("="))
        if not separator or not spec:
            raise UsageError(f"--stages {part!r}: write STAGE=SPEC, for example base=org/model,sft=runs/sft")
        if stage not in STAGES:
            raise UsageError(f"--stages: unknown stage {stage!r}; stages are {', '.join(STAGES)}")
        if stage in found:
            raise UsageError(f"--stages: {stage} is given twice")
        found[stage] = spec
    for stage, spec in found.items():
        _check_spec(stage, spec)
    if "base" not in found:
        raise UsageError("--stages needs base=SPEC: the untouched model is the reference of all others")
    return {stage: found[stage] for stage in STAGES if stage in found}


def _check_spec(stage: str, spec: str) -> None:
    """``UsageError`` or ``ModelError`` where the spec can name no model; looks at the disk, never at the network."""
    from lm_audit.audits.privacy.stages.stage_inputs import stage_spec
    from lm_audit.models.loading.spec import parse_spec

    try:
        parsed = parse_spec(stage_spec(spec))
    except (UsageError, ModelError) as error:
        raise type(error)(f"--stages {stage}: {error}") from error
    if parsed.address is not None:
        raise UsageError(
            f"--stages {stage}: a model behind a server gives no ranks and no entropy; audit each stage with "
            f"--model {stage}=openai:... and --extraction-manifest FILE, by log-probabilities and by generation"
        )


def manifest_path(value: str | None, option: str = "--manifest") -> Path:
    """The manifest that ``option`` names; ``UsageError`` where it is not given or is no file that can be read."""
    if not value:
        raise UsageError("--stages needs --manifest FILE: without it nobody knows which canaries were trained on")
    try:
        return readable_file(value)
    except DataError as error:
        raise UsageError(f"{option} {error}") from error
