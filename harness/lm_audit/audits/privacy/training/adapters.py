"""LoRA adapters of a stage: which layers they go into, checked before a training begins."""

from __future__ import annotations

from typing import Any

from lm_audit.audits.privacy.stages.config import LoraSettings
from lm_audit.errors import UsageError
from lm_audit.models.causal_module import CausalModule

_SHOWN = 12


def lora_config(module: CausalModule, lora: LoraSettings) -> Any:
    """PEFT's config for the module; ``UsageError`` where a target names no layer of it, with the names that do."""
    from peft import LoraConfig

    from lm_audit.models.loading.adapters import passed_over

    known = layer_names(module)
    missing = [target for target in lora.targets if target not in known]
    if missing:
        example = "+".join(known[:2]) or "NAME"
        raise UsageError(
            f"--lora: {type(module).__name__} has no layer named {', '.join(missing)}; its layers are "
            f"{', '.join(known[:_SHOWN])}; write for example --lora r={lora.r},alpha={lora.alpha},targets={example}"
        )
    idle = sorted({name.rpartition(".")[2] for name in passed_over(module)}.intersection(lora.targets))
    if idle:
        raise UsageError(
            f"--lora: {type(module).__name__} reads the weights of its layers {', '.join(idle)} past any adapter, which"
            " would learn nothing there; leave them out of targets"
        )
    return LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        bias="none",
        target_modules=list(lora.targets),
        task_type="CAUSAL_LM",
    )


def layer_names(module: CausalModule) -> list[str]:
    """Last parts of the names of layers that an adapter can go into, in the order of the model, head left out."""
    import torch
    from transformers.pytorch_utils import Conv1D

    head = module.get_output_embeddings()
    names = [
        name.rpartition(".")[2]
        for name, layer in module.named_modules()
        if isinstance(layer, torch.nn.Linear | Conv1D) and layer is not head
    ]
    return list(dict.fromkeys(name for name in names if not name.isdigit()))
