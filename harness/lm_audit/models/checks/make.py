"""Whether a folder's weights and files speak of the make that its config names.

Families whose weights have the same names and shapes compute otherwise (Gemma adds 1 to the weights of its norms, and
scales its embeddings), and the config alone decides. What is left in the folder may contradict it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import text_config
from lm_audit.models.files.json_file import listed, read_json
from lm_audit.shared.textfiles import is_file

if TYPE_CHECKING:
    from torch import Tensor

_SHARE = 0.1
"""Of the weights of plain norms hardly any is negative: they begin at 1. Where 1 is added they begin at 0."""
_LEAST = 0.1
_NEAR = 0.3

_MAKES = ("llama", "mistral", "gemma", "qwen", "phi", "falcon", "olmo", "granite", "cohere", "bloom", "opt", "mamba")
"""Words of a model's name that tell its make."""

_TURNS = {"<start_of_turn>": ("gemma",), "<|start_header_id|>": ("llama",), "[INST]": ("llama", "mistral", "mixtral")}
"""What begins a turn in chat templates of some makes, and of those trained on from them."""

_OF_ALL = ("LlamaTokenizer", "GPT2Tokenizer", "TokenizersBackend", "PreTrainedTokenizer", "CodeGenTokenizer")
"""Classes of tokenizers that many makes share."""


def tell_make(module: CausalModule, config: Mapping[str, Any], folder: Path, tokenizer_folder: Path) -> None:
    """Warn, with the evidence, where weights or files of ``folder`` speak of another make than its ``config``."""
    kind = str(text_config(module.config).model_type)
    _tell_dead_norms(module, folder)
    norms = _norms_speak(module)
    others = list(_files_speak(kind, config, tokenizer_folder))
    weighty = norms is not None and (norms[1] or others or _is_of_another(config, module))
    told = [*([norms[0]] if weighty and norms is not None else []), *others]
    if weighty or len(others) > 1:
        warnings.warn(
            f"{folder / 'config.json'} names {kind}, and what lies beside it speaks of another make: {'; '.join(told)}."
            f" {type(module).__name__} computes as {kind} does, so that with weights of another make every number is"
            " wrong: check model_type and architectures",
            stacklevel=3,
        )


def _tell_dead_norms(module: CausalModule, folder: Path) -> None:
    """Warn of norms that multiply by nothing but zeros: what lies behind them reads nothing."""
    width = int(module.get_input_embeddings().embedding_dim)
    parts: list[tuple[str, Any]] = [(name, part) for name, part in module.named_modules() if _is_norm(part, width)]
    dead = [name for name, part in parts if not bool(part.weight.any()) and _adds_one(part) is False]
    if dead:
        warnings.warn(
            f"{folder}: nothing but zeros in the weights of {listed(dead)}, by which all is multiplied: what lies"
            " behind reads nothing, as in a file that was not written to its end",
            stacklevel=4,
        )


def _norms_speak(module: CausalModule) -> tuple[str, bool] | None:
    """What speaks against the way in which the norms use their weights, and whether it does so by itself."""
    import torch

    width = int(module.get_input_embeddings().embedding_dim)
    parts: list[Any] = [part for part in module.modules() if _is_norm(part, width)]
    if len(parts) < 3:
        return None
    added = _adds_one(parts[0])
    if added is None:
        return None
    weights = torch.stack([part.weight.detach().float().cpu() for part in parts])
    mean, negative = float(weights.mean()), (weights < 0).float().mean(1)
    if added and mean > _LEAST and not bool((weights < 0).any()):
        alone = bool(((weights - 1).abs() < _NEAR).all())
        return f"the weights of its norms lie at {mean:.2f}, none of them below 0, and its class adds 1 to them", alone
    if not added and float((negative > _SHARE).float().mean()) >= 0.5:
        share = float(negative.mean())
        return (
            f"of the weights of its norms {share:.0%} are negative (mean {mean:.2f}), as where 1 is added to them, and"
            " its class takes them as they are"
        ), True
    return None


def _is_norm(part: Any, width: int) -> bool:
    weight: Any = getattr(part, "weight", None)
    named = "norm" in type(part).__name__.casefold()
    return named and getattr(weight, "ndim", 0) == 1 and weight.numel() == width and not weight.is_meta


def _adds_one(part: Any) -> bool | None:
    """Whether a norm multiplies by its weights plus 1; ``None`` where it does neither that nor multiply by them."""
    import torch

    weight: Tensor = part.weight.detach().float()
    x = torch.linspace(-1.0, 1.3, weight.numel(), device=weight.device).roll(weight.numel() // 3)[None, None]
    bias: Any = getattr(part, "bias", None)
    with suppress(Exception), torch.inference_mode():  # some take a gate, or more
        found = part(x.to(part.weight.dtype)).float() - (0 if bias is None else bias.detach().float())
        for shifted in (x, x - x.mean()):
            base = shifted * shifted.square().mean().rsqrt()
            for added in (False, True):
                if torch.allclose(found, base * (weight + added), rtol=0.03, atol=0.03):
                    return added
    return None


def _is_of_another(config: Mapping[str, Any], module: CausalModule) -> bool:
    """Whether the config states an activation that is not its class's own."""
    text = text_config(module.config)
    stated = config.get("hidden_act")
    with suppress(Exception):  # a configuration may have no defaults
        own: Any = type(text)()
        return stated is not None and stated not in (
            getattr(own, "hidden_act", stated),
            own.to_dict().get("hidden_act"),
        )
    return False


def _files_speak(kind: str, config: Mapping[str, Any], folder: Path) -> Iterator[str]:
    name = str(config.get("_name_or_path") or "").casefold()
    makes = [make for make in _MAKES if re.search(make if len(make) > 4 else rf"(?<![a-z]){make}(?![a-z])", name)]
    if makes and not any(make in kind or kind in make for make in makes) and any(make in kind for make in _MAKES):
        yield f"its _name_or_path is {config['_name_or_path']!r:.80}"
    settings = read_json(folder / "tokenizer_config.json") if is_file(folder / "tokenizer_config.json") else {}
    stated = str(settings.get("tokenizer_class") or "").removesuffix("Fast")
    if stated and stated not in _OF_ALL:
        users = _users(stated)
        if users and kind not in users and _own_class(kind) not in (None, stated, *_OF_ALL):
            yield f"its tokenizer is a {stated}, of {listed(sorted(users))}"
    template = _template(settings, folder)
    for mark, owners in _TURNS.items():
        if mark in template and not any(owner in kind for owner in owners) and any(make in kind for make in _MAKES[:3]):
            yield f"its chat template begins turns by {mark}, as {' and '.join(owners)} do"


def _template(settings: Mapping[str, Any], folder: Path) -> str:
    path = folder / "chat_template.jinja"
    if is_file(path):
        with suppress(OSError, ValueError):
            return path.read_text(encoding="utf-8")
    return str(settings.get("chat_template") or "")


def _users(name: str) -> set[str]:
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    return {kind for kind, found in TOKENIZER_MAPPING_NAMES.items() if found == name}


def _own_class(kind: str) -> str | None:
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    return TOKENIZER_MAPPING_NAMES.get(kind)
