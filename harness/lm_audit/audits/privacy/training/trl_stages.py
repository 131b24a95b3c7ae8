"""SFT and DPO of real models with TRL and PEFT: full weights or LoRA."""

from __future__ import annotations

import copy
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from lm_audit.audits.privacy.data.corpus import read_texts
from lm_audit.audits.privacy.data.preferences import read_preferences
from lm_audit.audits.privacy.stages.config import StagesConfig, TrainSettings
from lm_audit.audits.privacy.training.adapters import lora_config
from lm_audit.audits.privacy.training.batches import encode_rows, require_context
from lm_audit.audits.privacy.training.dpo import Completion, check_first_loss, encode_pairs
from lm_audit.audits.privacy.training.dropout import has_adapter, without_dropout
from lm_audit.audits.privacy.training.fit_for_trl import require_copied, require_same_head
from lm_audit.audits.privacy.training.loop import Progress, finite_loss
from lm_audit.audits.privacy.training.own_stages import (
    require_change,
    save_stage,
    summary,
    trainable_model,
    weights_probe,
)
from lm_audit.errors import ModelError, StoreError, UsageError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.checks.causality import prove_causal
from lm_audit.models.files.json_file import one_line
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.textfiles.full_disk import full_disk


def trl_sft(stage: str, config: StagesConfig, folder: Path, target: Path) -> dict[str, Any]:
    """Supervised fine-tuning of the base model with ``SFTTrainer``; the record for the metadata."""
    trl = _trl()
    from lm_audit.audits.privacy.stages.stage_inputs import base_spec, stage_data

    texts = read_texts(stage_data(stage, folder))
    model = trainable_model(base_spec(config), config.device)
    if _is_peft(model.module):
        require_copied(model.module)
    adapter = None if config.lora is None else lora_config(model.module, config.lora)
    rows = encode_rows(model.tokenizer, texts, config.sft.max_length)
    require_context(model.module, [len(row) for row in rows], "this training text", "--sft")
    arguments = trl.SFTConfig(
        **_arguments(config, config.sft, folder, stage, str(model.device.type), config.seed),
        max_length=config.sft.max_length,
        packing=False,
    )
    trainer = trl.SFTTrainer(
        model=model.module,
        args=arguments,
        # As ids: TRL would put EOS behind texts that their tokenizer ends in EOS already, or that spell it out.
        train_dataset=_dataset([{"input_ids": list(row)} for row in rows]),
        processing_class=model.tokenizer,
        peft_config=adapter,
        callbacks=[_stop_at_nan(stage)],
    )
    return _finish(trainer, stage, model.tokenizer, folder, target, len(texts))


def trl_dpo(stage: str, config: StagesConfig, folder: Path, target: Path) -> dict[str, Any]:
    """Preference optimisation of the SFT stage with ``DPOTrainer``; the record for the metadata.

    The reference is a frozen copy of the SFT stage itself: without one the trainer would reload whatever the model's
    config names, silently the base model. The first loss proves it.
    """
    trl = _trl()
    from lm_audit.audits.privacy.stages.stage_inputs import stage_data

    pairs = read_preferences(stage_data(stage, folder))
    model = trainable_model(str(folder / "stages" / "sft"), config.device)
    adapter = _is_peft(model.module)
    rows = encode_pairs(model.tokenizer, pairs, config.dpo.max_length)
    require_context(model.module, [max(len(s.ids) for s in pair) for pair in rows], "this preference pair", "--dpo")
    arguments = trl.DPOConfig(
        **_arguments(config, config.dpo, folder, stage, str(model.device.type), config.seed + 1),
        beta=config.beta,
        max_length=config.dpo.max_length,
    )
    trainer = _of_ids(trl.DPOTrainer)(
        model=model.module,
        ref_model=None if adapter else copy.deepcopy(model.module).eval().requires_grad_(False),
        args=arguments,
        train_dataset=_dataset([_as_trl(*pair) for pair in rows]),
        processing_class=model.tokenizer,
        callbacks=[_stop_at_nan(stage)],
    )
    record = _finish(trainer, stage, model.tokenizer, folder, target, len(pairs))
    check_first_loss(record["first_loss"], stage)
    return record | {"beta": config.beta}


def _trl() -> Any:
    try:
        import trl
    except ImportError as error:
        raise UsageError(
            "trainer='trl' needs trl, peft and datasets: pip install 'pytest-lm-audit[privacy]'; or use trainer='own'"
        ) from error
    return trl


def _arguments(
    config: StagesConfig, settings: TrainSettings, folder: Path, stage: str, device: str, seed: int
) -> dict[str, Any]:
    # bf16 is TRL's default and an error without a GPU that has it; the audit scores in float32, so training does too.
    return {
        "output_dir": str(trl_folder(folder, stage)),
        "num_train_epochs": settings.epochs,
        "learning_rate": settings.lr,
        "per_device_train_batch_size": settings.batch_size,
        "gradient_accumulation_steps": 1,
        "warmup_steps": settings.warmup_steps,
        "lr_scheduler_type": "linear" if settings.final_share < 1 else "constant_with_warmup",
        "weight_decay": settings.weight_decay,
        "adam_beta1": settings.betas[0],
        "adam_beta2": settings.betas[1],
        "max_grad_norm": settings.clip,
        "seed": seed,
        "data_seed": seed,
        "use_cpu": device == "cpu",
        "bf16": False,
        "fp16": False,
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 1,
        "save_strategy": "epoch",
        "save_total_limit": 1,
    }


def _is_peft(module: CausalModule) -> bool:
    from peft import PeftModel

    return isinstance(module, PeftModel)


def _dataset(rows: list[dict[str, Any]]) -> Any:
    import datasets

    datasets.disable_progress_bars()
    return datasets.Dataset.from_list(rows)


def _of_ids(trainer: Any) -> Any:
    """TRL's trainer of preferences for rows that are ids already, which it takes from nobody but itself."""
    return type("OfIds", (trainer,), {"_prepare_dataset": lambda self, dataset, *_: dataset})


def _as_trl(chosen: Completion, rejected: Completion) -> dict[str, list[int]]:
    """The ids of a pair by TRL's names: one prompt, which ends where the sides part or a completion begins."""
    parted = next((i for i, (a, b) in enumerate(zip(chosen.ids, rejected.ids, strict=False)) if a != b), None)
    start = min(chosen.start, rejected.start, len(chosen.ids) if parted is None else parted)
    return {
        "prompt_ids": list(chosen.ids[:start]),
        "chosen_ids": list(chosen.ids[start:]),
        "rejected_ids": list(rejected.ids[start:]),
    }


def _stop_at_nan(stage: str) -> Any:
    from transformers import TrainerCallback

    class StopAtNaN(TrainerCallback):
        """Raises at the first logged loss that is not finite; the trainer itself would go on."""

        def on_log(
            self, args: object, state: Any, control: object, logs: Mapping[str, float] | None = None, **_: Any
        ) -> None:
            if logs and "loss" in logs:
                earlier = [entry["loss"] for entry in state.log_history[:-1] if "loss" in entry]
                finite_loss(torch.tensor(float(logs["loss"])), stage, state.global_step - 1, earlier)

    return StopAtNaN()


def _finish(trainer: Any, stage: str, tokenizer: Tokenizer, folder: Path, target: Path, rows: int) -> dict[str, Any]:
    from transformers.trainer_callback import PrinterCallback

    before = weights_probe(trainer.model)
    if not before:
        raise ModelError(f"stage {stage}: no parameter is trainable; is the adapter loaded as trainable?")
    require_same_head(trainer.model)
    trainer.remove_callback(PrinterCallback)
    started = time.perf_counter()
    keep = ("lora_",) if stage == "sft" and has_adapter(trainer.model) else ()
    checkpoints = trl_folder(folder, stage)
    with without_dropout(trainer.model, keep=keep), disk_told(stage, checkpoints):
        trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    require_change(before, weights_probe(trainer.model), stage)
    module = trainer.accelerator.unwrap_model(trainer.model)
    _drop_reference(module)
    prove_causal(module, f"of stage {stage}")
    save_stage(module, tokenizer, target)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return summary(Progress(stage, trainer.state.global_step, losses), rows, time.perf_counter() - started)


@contextmanager
def disk_told(stage: str, folder: Path) -> Iterator[None]:
    """``StoreError`` for a checkpoint that the disk refuses; what was written of it is removed on the next start."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and full_disk(error) is None:
            raise
        raise StoreError(
            f"stage {stage}: cannot write a checkpoint into {folder} ({one_line(error)}); free some disk space and run"
            " again"
        ) from error


def trl_folder(folder: Path, stage: str) -> Path:
    """Where the trainer keeps its checkpoints of a stage."""
    return folder / "checkpoints" / f"trl-{stage}"


def last_checkpoint(folder: Path) -> str | None:
    """The latest checkpoint that was written to its end; those that a kill cut short are removed.

    The trainer writes ``trainer_state.json`` last, so that a checkpoint without a readable one has missing parts.
    """
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: _step_of(path))
    for path in reversed(found):
        if _is_complete(path):
            return str(path)
        shutil.rmtree(path)
    return None


def _step_of(path: Path) -> int:
    number = path.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _is_complete(path: Path) -> bool:
    try:
        state = json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
        for name in ("optimizer.pt", "scheduler.pt"):
            torch.load(path / name, map_location="cpu", weights_only=True)
        weights = [file for file in path.glob("*.safetensors") if _can_be_read(file)]
    except Exception:  # a torn file fails in as many ways as there are formats
        return False
    return bool(weights) and isinstance(state.get("global_step"), int)


def _can_be_read(path: Path) -> bool:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return bool(list(file.keys()))


def _drop_reference(module: Any) -> None:
    """TRL clones the adapter to ``ref`` and would write it beside the trained one."""
    if _is_peft(module) and "ref" in module.peft_config:
        module.delete_adapter("ref")
