"""StagesConfig: everything that decides what the four stages are; equal configs give equal models."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from lm_audit.errors import UsageError
from lm_audit.models.toy.tiny import TinySettings
from lm_audit.shared.number_checks import suggestion

_READERS = ("audits/given/given_rows.py", "audits/hub_rows.py", "audits/hub_network.py", "shared")
"""What decides, beside models and this audit, on which texts the stages are trained."""


@dataclass(frozen=True)
class TrainSettings:
    """Optimiser settings of one stage: AdamW, linear warm-up, then linear decay to ``final_share`` of the peak."""

    epochs: int
    lr: float
    batch_size: int = 32
    warmup_steps: int = 20
    final_share: float = 0.1
    clip: float = 1.0
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    max_length: int = 512


@dataclass(frozen=True)
class LoraSettings:
    """Low-rank adapters; the source design's values, with the targets named instead of left to a default."""

    r: int = 32
    alpha: int = 16
    dropout: float = 0.05
    targets: tuple[str, ...] = ("q_proj", "v_proj")


@dataclass(frozen=True)
class DpSettings:
    """DP-SGD of the SFT stage. ``epsilon`` inf runs the same loop without noise and clipping: its own control."""

    epsilon: float
    delta: float | None = None
    max_grad_norm: float = 1.0
    accountant: str = "rdp"


@dataclass(frozen=True)
class StagesConfig:
    """What to plant, what to train on, and how. The defaults are the demo of about a minute on ``tiny``.

    ``members`` canaries are spread over the ``repetitions`` levels; ``controls`` held-out twins are never trained on;
    with ``assignment="coins"`` all ``members + controls`` canaries are included by fair coins instead (at the first
    repetition level), which alone allows a one-run epsilon. ``documents`` ordinary texts come from
    ``documents_path``, or from the seeded template text; ``decoys`` of them are carrier sentences with other codes
    (only without a path), so that learning the carrier does not look like memorising. ``trainer="own"`` is the short
    loop of this project, ``"trl"`` SFTTrainer and DPOTrainer. Stage 0 is the model as it is; ``tiny`` is made with
    ``seed`` and the ``tiny`` settings.
    """

    model: str = "tiny"
    seed: int = 0
    family: str = "code"
    members: int = 15
    repetitions: tuple[int, ...] = (1, 4, 16)
    controls: int = 200
    assignment: Literal["fixed", "coins"] = "fixed"
    documents: int = 1500
    documents_path: Path | None = None
    decoys: int = 120
    pairs: int = 120
    pairs_per_canary: int = 2
    pair_style: Literal["secret", "source"] = "secret"
    sft: TrainSettings = TrainSettings(epochs=3, lr=3e-3)
    dpo: TrainSettings = TrainSettings(epochs=1, lr=1e-4, batch_size=8, warmup_steps=0, final_share=1.0)
    beta: float = 0.1
    trainer: Literal["own", "trl"] = "own"
    lora: LoraSettings | None = None
    dp: DpSettings | None = None
    device: str = "auto"
    tiny: TinySettings = field(default_factory=TinySettings)
    output: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        from lm_audit.audits.privacy.stages.config_checks import check_stages_config

        check_stages_config(self)

    @property
    def sha256(self) -> str:
        """Hash of everything that decides the weights: where they are written and on which device they run is left
        out.
        """
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The config as plain JSON; infinite epsilon as the string ``"inf"``."""
        record = asdict(self)
        for name in ("output", "device"):
            del record[name]
        record["documents_path"] = str(self.documents_path) if self.documents_path else None
        if self.dp is not None and math.isinf(self.dp.epsilon):
            record["dp"]["epsilon"] = "inf"
        plain: dict[str, Any] = json.loads(json.dumps(record, allow_nan=False))
        return plain

    @classmethod
    def from_json(
        cls, record: Mapping[str, object], *, output: Path | None = None, device: str = "auto"
    ) -> StagesConfig:
        """The inverse of :meth:`to_json`; ``UsageError`` for an unknown field or a value of the wrong form."""
        known = [one.name for one in dataclass_fields(cls) if one.name not in ("output", "device")]
        for name in record:
            if name not in known:
                told = suggestion(str(name), known) or f"; there are {', '.join(known)}"
                raise UsageError(f"this is no config of the privacy audit: it has no field {name!r}{told}")
        try:
            fields = {name: _revive(name, value) for name, value in record.items()}
            return cls(**fields, output=output, device=device)
        except (TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"this is no config of the privacy audit: {error}") from error

    def folder(self) -> Path:
        """Where the stages are: ``output``, else the user's cache, named by all that the weights hang on."""
        if self.output is not None:
            return self.output
        from lm_audit.models.files.disk_cache import cache_dir
        from lm_audit.shared.code_version import made_by

        made_of = [made_by("models", "audits/privacy", *_READERS), *self.inputs().values()]
        return cache_dir() / "privacy" / f"{self.sha256[:16]}-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:8]}"

    @property
    def toy(self) -> bool:
        """Whether the base is the embedded toy, which the config describes whole."""
        return self.model == "tiny" or self.model.startswith("tiny:")

    def inputs(self) -> dict[str, str]:
        """What the files that the config names hold, so that stages never pass for those of another base or corpus."""
        from lm_audit.models.loading.identity.spec_identity import model_identity

        base = self.model if self.toy else model_identity(self.model)
        return {"base": base, "documents": _documents_state(str(self.documents_path)) if self.documents_path else ""}


def _documents_state(source: str) -> str:
    """What the documents are: a set of the hub may be another under the same name."""
    from lm_audit.audits.hub_rows import hub_set
    from lm_audit.models.loading.identity.spec_identity import file_state
    from lm_audit.shared.textfiles import is_folder, on_disk, readable_file

    if hub_set(source) is not None:
        return _read_state(source)
    path = on_disk(source).path
    return file_state(str(path if is_folder(path) else readable_file(path)))


@lru_cache(maxsize=8)
def _read_state(source: str) -> str:
    from lm_audit.audits.privacy.data.documents import read_documents

    return hashlib.sha256(repr(read_documents(source)).encode("utf-8", "surrogatepass")).hexdigest()


_NESTED: Mapping[str, Any] = {
    "sft": StagesConfig.sft,
    "dpo": StagesConfig.dpo,
    "lora": LoraSettings(),
    "dp": DpSettings(math.inf),
    "tiny": TinySettings(),
}
"""Fields that hold several settings; what a config leaves out of them is as here."""


def _revive(name: str, value: Any) -> Any:
    if name in _NESTED and (value is not None or name not in ("lora", "dp")):
        return _nested(name, value)
    if value is None:
        return None
    if name == "documents_path":
        if not isinstance(value, str):
            raise UsageError(
                f"documents_path must be the name of a file, a folder or a set of documents, got {value!r:.60}"
            )
        return Path(value or " ")  # an empty name is refused, and is not the folder that one stands in
    return tuple(value) if isinstance(value, list) else value


def _nested(name: str, value: object) -> Any:
    start = _NESTED[name]
    known = [one.name for one in dataclass_fields(start)]
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} must be an object with some of {', '.join(known)}, got {value!r:.60}")
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        told = suggestion(str(unknown), known) or f"; there are {', '.join(known)}"
        raise UsageError(f"{name} has no setting {unknown!r}{told}")
    if name == "dp" and "epsilon" not in value:
        raise UsageError("dp needs epsilon, a number above 0 (inf: no noise)")
    plain = {key: tuple(one) if isinstance(one, list) else one for key, one in value.items()}
    return replace(start, **plain | ({"epsilon": math.inf} if plain.get("epsilon") == "inf" else {}))


def smoke_config(**changes: Any) -> StagesConfig:
    """A few seconds for all four stages: shows that everything runs, not that anything leaks."""
    small = StagesConfig(
        members=4,
        repetitions=(1, 16),
        controls=60,
        documents=400,
        decoys=40,
        pairs=24,
        tiny=TinySettings(hidden=64, mlp=168, rows=400, decoys=40, epochs=1),
        sft=TrainSettings(epochs=2, lr=2e-3),
    )
    return replace(small, **changes)
