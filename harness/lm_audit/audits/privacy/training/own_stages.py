"""SFT and DPO stages by the project's own loop: full weights or LoRA, with or without DP."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.audits.privacy.training.adapters import lora_config
from lm_audit.audits.privacy.training.dpo import train_preferences
from lm_audit.audits.privacy.training.loop import Progress
from lm_audit.audits.privacy.training.sft import train_texts
from lm_audit.errors import ModelError, StoreError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.models.toy.training import one_thread

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.files.source import Source


def own_sft(config: StagesConfig, texts: Sequence[str], spec: str, target: Path, checkpoint: Path) -> dict[str, Any]:
    """Train SFT from the model ``spec`` and write it to ``target``; the record for the metadata."""
    model = trainable_model(spec, config.device)
    module = _adapted(model.module, config)
    with _deterministic(model, config.seed):
        before = weights_probe(module)
        started = time.perf_counter()
        if config.dp is not None:
            from lm_audit.audits.privacy.training.dp import train_texts_privately

            result = train_texts_privately(
                module, model.tokenizer, texts, config.sft, config.dp, seed=config.seed, checkpoint=checkpoint
            )
            progress, extra = result.progress, result.to_json()
        else:
            progress = train_texts(
                module, model.tokenizer, texts, config.sft, seed=config.seed, stage="sft", checkpoint=checkpoint
            )
            extra = {}
    require_change(before, weights_probe(module), "sft")
    save_stage(module, model.tokenizer, target)
    return summary(progress, len(texts), time.perf_counter() - started) | extra


def own_dpo(
    stage: str,
    config: StagesConfig,
    pairs: Sequence[Mapping[str, object]],
    source: Path,
    target: Path,
    checkpoint: Path,
) -> dict[str, Any]:
    """Train DPO from the SFT stage in ``source`` and write it to ``target``; the record for the metadata."""
    model = trainable_model(str(source), config.device)
    module = model.module
    with _deterministic(model, config.seed + 1):
        before = weights_probe(module)
        started = time.perf_counter()
        progress = train_preferences(
            module,
            model.tokenizer,
            pairs,
            config.dpo,
            beta=config.beta,
            seed=config.seed + 1,
            stage=stage,
            checkpoint=checkpoint,
        )
    require_change(before, weights_probe(module), stage)
    save_stage(module, model.tokenizer, target)
    return summary(progress, len(pairs), time.perf_counter() - started) | {"beta": config.beta}


def trainable_model(spec: str, device: str) -> LanguageModel:
    """A model whose weights may change: in float32, no longer mapped from the file, an adapter left unmerged."""
    from lm_audit.models import load_model
    from lm_audit.models.loading.adapters import dequantised

    source = _adapter_source(spec)
    if source is not None and source.adapter is not None:
        return _with_adapter(source, device)
    model = load_model(spec, device=device, dtype="float32")
    model.module = dequantised(model.module)
    for parameter in model.module.parameters():
        parameter.data = parameter.data.clone()
        parameter.requires_grad_(True)
    return model


def _adapter_source(spec: str) -> Source | None:
    """The checked files of a folder with an adapter: one that lies beside a whole model is left out, as elsewhere."""
    from lm_audit.models.files.source import find_source

    return find_source(spec) if (Path(spec) / "adapter_config.json").is_file() else None


def _with_adapter(source: Source, device: str) -> LanguageModel:
    from lm_audit.models.loading.adapters import attached

    assert source.adapter is not None
    model = trainable_model(source.adapter.base, device)
    model.module.requires_grad_(False)
    model.module = attached(model.module, source.adapter)
    return model


def _adapted(module: CausalModule, config: StagesConfig) -> CausalModule:
    if config.lora is None:
        return module
    from peft import get_peft_model

    settings = lora_config(module, config.lora)
    plain: Any = module
    torch.manual_seed(config.seed)
    adapted: CausalModule = get_peft_model(plain, settings)
    return adapted


@contextmanager
def _deterministic(model: LanguageModel, seed: int) -> Iterator[None]:
    """A seeded generator (dropout), and on CPU one thread for small models, which is faster and gives the same bits."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if model.device.type == "cpu" and model.module.num_parameters() < 5_000_000:
            with one_thread():
                yield
        else:
            yield


def weights_probe(module: CausalModule) -> list[float]:
    """Mean absolute value of each trainable tensor."""
    return [float(p.detach().double().abs().mean()) for p in module.parameters() if p.requires_grad]


def require_change(before: Sequence[float], after: Sequence[float], stage: str) -> None:
    """``ModelError`` if training left every weight as it was."""
    if list(before) == list(after):
        raise ModelError(f"stage {stage}: training left every weight as it was; nothing was learned")


def save_stage(module: CausalModule, tokenizer: Tokenizer, target: Path) -> None:
    """Write model (or adapter) and tokenizer; ``StoreError`` for a full disk, with nothing half-written left behind."""
    scratch = target.with_name(f"{target.name}.partial")
    shutil.rmtree(scratch, ignore_errors=True)
    _guarded(lambda: _write(module, tokenizer, scratch), scratch, target)
    shutil.rmtree(target, ignore_errors=True)
    scratch.rename(target)


def _write(module: CausalModule, tokenizer: Tokenizer, scratch: Path) -> None:
    scratch.mkdir(parents=True)
    module.save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)


def _guarded(write: Callable[[], None], scratch: Path, target: Path) -> None:
    try:
        write()
    except Exception as error:  # safetensors raises its own class for a full disk
        shutil.rmtree(scratch, ignore_errors=True)
        raise StoreError(f"cannot write the stage {target} ({error}); free some disk space and run again") from error


def summary(progress: Progress, rows: int, seconds: float) -> dict[str, Any]:
    """What the metadata record of a training."""
    losses = progress.losses
    tail = losses[-10:]
    return {
        "rows": rows,
        "steps": progress.step,
        "first_loss": losses[0],
        "last_loss": sum(tail) / len(tail),
        "seconds": round(seconds, 1) if math.isfinite(seconds) else None,
    }
