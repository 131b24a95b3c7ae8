"""``--stages base=SPEC,sft=SPEC,...``: checkpoints that somebody else trained."""

from __future__ import annotations

from pathlib import Path

from lm_audit.audits.privacy.stage_names import STAGES
from lm_audit.errors import UsageError


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
    if "base" not in found:
        raise UsageError("--stages needs base=SPEC: the untouched model is the reference of all others")
    return {stage: found[stage] for stage in STAGES if stage in found}


def manifest_path(value: str | None) -> Path:
    """The manifest that goes with ``--stages``; ``UsageError`` where it is not given or not there."""
    if not value:
        raise UsageError("--stages needs --manifest FILE: without it nobody knows which canaries were trained on")
    path = Path(value)
    if not path.is_file():
        raise UsageError(f"--manifest {value}: there is no such file")
    return path
