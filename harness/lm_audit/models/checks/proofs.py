"""What a model's trials have shown, kept on disk: by which ways its answers are its own on this machine.

A trial is a few short passes, seconds on a device whose first passes are slow. What it found is keyed by everything
that could change it: weights and settings (fingerprint), libraries, this package, device and dtype.
"""

from __future__ import annotations

import hashlib
import json
import platform
from typing import TYPE_CHECKING, Any

import torch

from lm_audit.models.compat import attention_of
from lm_audit.models.files.disk_cache import cache_dir
from lm_audit.models.loading.placement import places
from lm_audit.shared.code_version import made_by
from lm_audit.shared.sealed import sealed, unsealed
from lm_audit.shared.textfiles import replacing

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


class Proofs:
    """Findings by name for one model; a model without a known fingerprint has none, and its trials are run."""

    def __init__(self, model: LanguageModel):
        fingerprint = model.known_fingerprint
        self._path = None if fingerprint is None else cache_dir() / "proofs" / f"{_key(model, fingerprint)}.json"

    def get(self, name: str) -> Any:
        """What was found, ``None`` where nothing is known."""
        return self._read().get(name)

    def put(self, name: str, found: object) -> None:
        """Keep a finding; a cache that cannot be written costs the trial the next time, and nothing else."""
        if self._path is None:
            return
        known = {**self._read(), name: found}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self._path) as draft:
                draft.write_bytes(sealed(json.dumps(known).encode("ascii")))
        except OSError:
            return

    def _read(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            known = json.loads(unsealed(self._path.read_bytes(), required=True))
        except (OSError, ValueError, RecursionError):
            return {}
        return known if isinstance(known, dict) else {}


def _key(model: LanguageModel, fingerprint: str) -> str:
    device = model.device
    named = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} {_cpu()}"
    attention = attention_of(model.module)
    facts = [
        fingerprint,
        torch.__version__,
        made_by("models"),
        device.type,
        named,
        str(model.dtype),
        type(model.module).__name__,
        str(attention),
        str(sorted(places(model.module))),
        _settings(model.module.config),
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def _settings(config: object) -> str:
    """The configuration as it is now: the fingerprint holds it as it was loaded."""
    values = config.to_dict() if hasattr(config, "to_dict") else vars(config)
    return json.dumps(values, sort_keys=True, default=str)


def _cpu() -> str:
    return str(torch.backends.cpu.get_cpu_capability())
