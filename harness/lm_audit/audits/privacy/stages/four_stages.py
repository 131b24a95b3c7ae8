"""run_stages: base, SFT, DPO without and DPO with canaries, each written once and restartable."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from lm_audit.audits.privacy.data.corpus import read_texts, verify_training_files
from lm_audit.audits.privacy.data.jsonl import write_text
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.data.preferences import read_preferences
from lm_audit.audits.privacy.data.prepare import CORPUS, MANIFEST, WITH, WITHOUT, prepare
from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.audits.privacy.stages.run_metadata import append_metadata
from lm_audit.audits.privacy.stages.stage_inputs import base_spec, stage_data, stage_spec
from lm_audit.audits.privacy.stages.stage_names import STAGES
from lm_audit.audits.privacy.training.inputs import check_inputs
from lm_audit.errors import DataError, ModelError, UsageError
from lm_audit.shared.former_names import former_arguments
from lm_audit.shared.sealed_folder import is_whole, write_seal
from lm_audit.shared.textfiles import is_file, read_json_object

OnMessage = Callable[[str], None]
"""Told in a sentence what begins."""
DONE = "stage.json"
METADATA = "run_metadata.jsonl"


@former_arguments(report="on_message")
def run_stages(config: StagesConfig, *, on_message: OnMessage | None = None) -> dict[str, Path]:
    """Folder of each stage (``base``, ``sft``, ``dpo_no_canary``, ``dpo_with_canary``), trained where it is missing.

    Data, checkpoints and stages lie in ``config.folder()``; a stage that is complete is not trained again, and one that
    was interrupted goes on from its checkpoint. Raises ``UsageError`` where the folder holds stages of another config,
    ``DataError`` for data that do not fit the manifest, ``ModelError`` for a NaN loss or a stage that changed nothing,
    ``StoreError`` for a full disk.
    """
    folder = config.folder()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(str(folder / ".lock")):
        claim(config, folder)
        manifest = prepare(config, folder)
        verify_training_files(manifest)
        if not all(is_done(folder / "stages" / stage) for stage in STAGES):
            with quiet_training():
                check_inputs(config, manifest, folder)
        return {stage: _stage(stage, config, manifest, folder, on_message or _silent) for stage in STAGES}


def _silent(message: str) -> None:
    """Reports nothing."""


def claim(config: StagesConfig, folder: Path) -> None:
    """Write config and inputs; ``UsageError`` if the folder holds what was made with others.

    A setting may change as long as nothing there hangs on it: steps are called one by one, each with its own options.
    """
    _claim(config.to_json(), folder, "config.json", "stages of another config")
    _claim(config.inputs(), folder, "inputs.json", "stages of another base model or other documents")


_HANG_ON = {
    MANIFEST: {"seed", "family", "members", "repetitions", "controls", "assignment"},
    CORPUS: {"documents", "documents_path", "decoys", "tiny"},
    WITHOUT: (pairs := {"pairs", "pairs_per_canary", "pair_style"}),
    WITH: pairs,
}
"""The settings of which each file is made; what is trained hangs on all."""


def _claim(record: Mapping[str, object], folder: Path, name: str, what: str) -> None:
    path = folder / name
    if is_file(path):
        found = read_json_object(path)
        differing = sorted(key for key in record.keys() | found.keys() if record.get(key) != found.get(key))
        trained = any((folder / part).exists() for part in ("stages", "checkpoints"))
        fixed = {key for file, keys in _HANG_ON.items() if (folder / file).exists() for key in keys}
        if differing and (trained or fixed.intersection(differing)):
            raise UsageError(f"{folder} holds {what} (differs in {', '.join(differing)}); use another folder")
        if not differing:
            return
    write_text(path, json.dumps(record, indent=1) + "\n")


def _stage(stage: str, config: StagesConfig, manifest: Manifest, folder: Path, on_message: OnMessage) -> Path:
    target = folder / "stages" / stage
    if is_done(target) and (stage != "base" or stage_spec(target) == base_spec(config)):
        on_message(f"{stage}: complete")
        return target
    shutil.rmtree(target, ignore_errors=True)
    on_message(f"{stage}: training")
    with quiet_training():
        record = _trainers(config)[stage](stage, config, folder, target)
    record |= {"stage": stage, "seed": config.seed, "config": config.to_json(), "config_sha256": config.sha256}
    record |= {"manifest_sha256": manifest.sha256, "files": {f.purpose: f.sha256 for f in manifest.files}}
    if stage != "base":
        append_metadata(folder / METADATA, _kind(stage, config), record)
    write_text(target / DONE, json.dumps(record, indent=1, allow_nan=False) + "\n")
    write_seal(target, target)
    _checkpoint(folder, stage).unlink(missing_ok=True)
    shutil.rmtree(folder / "checkpoints" / f"trl-{stage}", ignore_errors=True)
    return target


def is_done(target: Path) -> bool:
    """Whether the stage was written to its end and is what was written: of one that was damaged since nothing follows.

    ``STAGE.seal`` beside it holds what its files are (:mod:`lm_audit.shared.sealed_folder`).
    """
    try:
        return bool(read_json_object(target / DONE)) and is_whole(target)
    except DataError:
        return False


@contextmanager
def quiet_training() -> Iterator[None]:
    """No progress bars, and none of the libraries' notices about their own future."""
    from lm_audit.models.loading.quiet import quiet_transformers

    with quiet_transformers(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


def _kind(stage: str, config: StagesConfig) -> str:
    if stage.startswith("dpo"):
        return "dpo_training"
    return "dp_sft_training" if config.dp is not None and stage == "sft" else "sft_training"


def _trainers(config: StagesConfig) -> Mapping[str, Callable[[str, StagesConfig, Path, Path], dict[str, Any]]]:
    if config.trainer == "trl":
        from lm_audit.audits.privacy.training.trl_stages import trl_dpo, trl_sft

        return {"base": _base, "sft": trl_sft, "dpo_no_canary": trl_dpo, "dpo_with_canary": trl_dpo}
    return {"base": _base, "sft": _sft, "dpo_no_canary": _dpo, "dpo_with_canary": _dpo}


def _checkpoint(folder: Path, stage: str) -> Path:
    return folder / "checkpoints" / f"{stage}.pt"


def _base(stage: str, config: StagesConfig, folder: Path, target: Path) -> dict[str, Any]:
    """Stage 0 is a pointer to the model as it is, so that nothing is copied and nothing can differ."""
    target.mkdir(parents=True, exist_ok=True)
    spec = base_spec(config)
    write_text(target / "spec.txt", spec + "\n")
    return {"spec": spec, "steps": 0}


def _sft(stage: str, config: StagesConfig, folder: Path, target: Path) -> dict[str, Any]:
    from lm_audit.audits.privacy.training.own_stages import own_sft

    texts = read_texts(stage_data(stage, folder))
    return own_sft(config, texts, base_spec(config), target, _checkpoint(folder, stage))


def _dpo(stage: str, config: StagesConfig, folder: Path, target: Path) -> dict[str, Any]:
    from lm_audit.audits.privacy.training.own_stages import own_dpo

    pairs = read_preferences(stage_data(stage, folder))
    source = folder / "stages" / "sft"
    if not source.is_dir():
        raise ModelError(f"the SFT stage {source} is not there; run the stages in order")
    return own_dpo(stage, config, pairs, source, target, _checkpoint(folder, stage))
