"""The trained model of the control with seed 0, as it lies in the package: training it takes a third of a minute.

It stands for a training of just these token ids from just this base model, and for no other. Whoever takes it measures
again what it was trained for. ``python -m lm_audit.audits.leakage.controls.planted`` makes its files anew.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.models.loading.identity.fingerprint import module_digest

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.toy.criterion import Criterion, TrainingRecord

EMBEDDED = Path(__file__).parent / "embedded"
WEIGHTS, RECORD = "planted.safetensors", "planted.json"


def made_of(model: LanguageModel, rows: Sequence[Sequence[int]], *settings: float) -> str:
    """A digest of all that a training hangs on: the base model's tensors, the rows of token ids, the settings."""
    content = [module_digest(model.module), list(map(list, rows)), settings]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def shipped(model: LanguageModel, key: str, criterion: Criterion) -> tuple[LanguageModel, TrainingRecord] | None:
    """The model that lies here for ``key``, where it does what ``criterion`` asks on this machine; else ``None``.

    The record is that of its training, but for the last value, which is measured here; seconds are 0.
    """
    file = EMBEDDED / RECORD
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if record.get("made_of") != key:
        return None
    import torch
    from safetensors.torch import load_file

    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.toy.criterion import TrainingRecord
    from lm_audit.models.toy.training import one_thread

    module: Any = copy.deepcopy(model.module)
    module.load_state_dict(load_file(EMBEDDED / WEIGHTS), strict=False)  # tied weights are stored once
    with torch.no_grad(), one_thread():
        value = float(criterion.measure(module))
    if not value >= criterion.least:
        return None
    values = (*((int(step), float(one)) for step, one in record["values"][:-1]), (int(record["steps"]), value))
    told = TrainingRecord(criterion.what, criterion.least, int(record["steps"]), 0.0, values)
    return LanguageModel(module, model.tokenizer, name=f"{model.name}-trained"), told


def write(folder: Path, trained: LanguageModel, record: TrainingRecord, key: str) -> None:
    """The two files of a model that was trained here."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().cpu().contiguous() for name, value in trained.module.named_parameters()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    content = {"made_of": key, **asdict(replace(record, seconds=0.0))}
    (folder / RECORD).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
