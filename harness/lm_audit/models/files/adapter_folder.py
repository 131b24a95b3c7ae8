"""A folder with a PEFT adapter, checked without torch."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import listed, read_json
from lm_audit.models.files.safetensors_file import FLOATS, TensorEntry, read_entries
from lm_audit.models.files.tokenizer_file import check_tokenizer
from lm_audit.models.files.weight_files import (
    has_tokenizer,
    has_whole_model,
    no_safetensors,
    refuse_dead_entries,
)
from lm_audit.shared.number_checks import is_number
from lm_audit.shared.textfiles import is_file, is_folder, is_there

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"

_ORIGIN = ("base_model_name_or_path", "revision", "inference_mode", "peft_version", "auto_mapping")
_TASK = "CAUSAL_LM"
_PROMPTS = (
    "PROMPT_TUNING",
    "MULTITASK_PROMPT_TUNING",
    "P_TUNING",
    "PREFIX_TUNING",
    "CPT",
    "CARTRIDGE",
    "ADAPTION_PROMPT",
)
"""Kinds that put trained vectors before or between the tokens: there is nothing to merge, and no place in a text."""


_MIXTURES = ("XLORA", "POLY")
"""Kinds that mix several adapters by the text, or by a number of a task that a text does not have."""

_OF_A_RANK = ("LORA", "ADALORA", "LOHA", "LOKR", "VERA")
"""Kinds that are nothing without a rank; others (OFT) state a rank or a size of blocks, and 0 for the other."""


_CHANGED_BASES = {
    "pissa_niter": "a decomposition with random numbers left, another one at each load",
    "loftq": "quantising it left, and PEFT would quantise it once more",
    "corda": "a decomposition by texts left, of which the file says nothing",
    "lora_ga": "the gradients of texts left, of which the file says nothing",
}
"""Beginnings of LoRA that change the weights of the base too, and what they leave of it."""


@dataclass(frozen=True)
class Adapter:
    """A PEFT adapter folder: its configuration, its weights and what its base model is called."""

    folder: Path
    config: Mapping[str, Any]
    weights: Path
    base: str

    @property
    def kind(self) -> str:
        """PEFT's name of the method: LORA, IA3, ..."""
        return str(self.config.get("peft_type", "LORA")).upper()

    @property
    def has_tokenizer(self) -> bool:
        return has_tokenizer(self.folder)

    @property
    def settings(self) -> str:
        """What the configuration says of the weights' effect (rank, scale, targets), not of where they came from."""
        kept = {key: value for key, value in self.config.items() if key not in _ORIGIN}
        plain = {key: sorted(value, key=str) if isinstance(value, list) else value for key, value in kept.items()}
        return json.dumps(plain, sort_keys=True)


def read_adapter(folder: Path) -> Adapter | None:
    """The PEFT adapter in ``folder``; ``None`` where the folder holds a whole model instead, adapter files beside it
    or not."""
    if not is_file(folder / CONFIG) or (is_file(folder / "config.json") and has_whole_model(folder)):
        return None
    path, weights = folder / CONFIG, folder / WEIGHTS
    config = read_json(path)
    _check_kind(config, path)
    if not is_file(weights):
        raise no_safetensors(folder, WEIGHTS)
    _check_floating(read_entries(weights), weights)
    base, revision = config.get("base_model_name_or_path"), config.get("revision")
    if not isinstance(base, str) or not base:
        raise ModelError(f"{path}: base_model_name_or_path is {base!r:.80}; expected a model spec")
    if revision is not None and not isinstance(revision, str):
        raise ModelError(f"{path}: revision is {revision!r:.80}; expected a branch, tag or commit")
    _check_settings(config, path)
    check_tokenizer(folder)
    refuse_dead_entries(folder)
    return Adapter(folder, config, weights, _base_spec(folder, base, revision))


def _check_floating(entries: Sequence[TensorEntry], path: Path) -> None:
    """``ModelError`` for weights stored as whole numbers or packed floats: nothing here says what they stand for."""
    odd = [
        f"{entry.name} ({entry.dtype})"
        for entry in entries
        if entry.dtype not in FLOATS and (entry.dtype.startswith("F") or ".lora_" in entry.name)
    ]
    if odd:
        raise ModelError(f"{path} holds weights that are no floating-point numbers of 16 bits or more: {listed(odd)}")


def _base_spec(folder: Path, base: str, revision: str | None) -> str:
    if is_there(Path(base)):
        return base
    if is_folder(folder / base) or (base.endswith(".gguf") and is_file(folder / base)):
        return str(folder / base)
    return f"{base}@{revision}" if revision and "@" not in base else base


def _check_kind(config: Mapping[str, object], path: Path) -> None:
    task = config.get("task_type")
    if task not in (None, _TASK):
        raise ModelError(
            f"{path}: task_type is {task!r:.60}, so that it was trained for another head than that of a causal language"
            f" model; only adapters of the task {_TASK} are audited"
        )
    if config.get("peft_type") is None:
        raise ModelError(f"{path} names no peft_type; expected a kind of adapter, such as LORA")
    kind = str(config["peft_type"]).upper()
    known = _kinds()
    if known and kind not in known:
        raise ModelError(
            f"{path}: peft_type is {config['peft_type']!r:.60}, a kind that the installed PEFT ({version('peft')}) does"
            f" not know; it knows {', '.join(sorted(known - set(_PROMPTS)))}"
        )
    if kind in _PROMPTS:
        raise ModelError(
            f"{path}: a {kind} adapter puts trained vectors beside the text, which cannot be merged into weights"
            " and has no place in a scored text; only adapters of the weights (LoRA and its kin) are audited"
        )
    if kind in _MIXTURES or config.get("arrow_config"):
        raise ModelError(
            f"{path}: a mixture of adapters ({kind}{' with arrow_config' if kind not in _MIXTURES else ''}) acts"
            " otherwise on each text, which cannot be merged into weights; only adapters of the weights (LoRA and its"
            " kin) are audited"
        )
    if config.get("alora_invocation_tokens"):
        raise ModelError(
            f"{path}: alora_invocation_tokens is {config['alora_invocation_tokens']!r:.60}: such an adapter acts behind"
            " those tokens alone, which cannot be merged into weights"
        )


def _check_settings(config: Mapping[str, object], path: Path) -> None:
    """``ModelError`` for a rank or scale that is none, and for a pattern that matches nothing since it is none.

    PEFT would say so too, once the base is loaded.
    """
    for name in ("rank_pattern", "alpha_pattern"):
        pattern = config.get(name)
        for key, value in pattern.items() if isinstance(pattern, Mapping) else ():
            _check_number(value, f"{name}.{key}", path, whole=name == "rank_pattern")
    if str(config.get("peft_type")).upper() in _OF_A_RANK:
        _check_number(config.get("r", 1), "r", path, whole=True)
    for name in ("use_rslora", "use_dora", "lora_bias", "fan_in_fan_out"):
        if config.get(name) not in (None, True, False):  # PEFT would take the text "false" for true
            raise ModelError(f"{path}: {name} is {config[name]!r:.60}; expected true or false")
    for name in ("lora_alpha", "alpha"):  # kinds beside LoRA have null for a scale of their own
        if config.get(name) is not None or (name == "lora_alpha" and config.get("peft_type") == "LORA"):
            _check_number(config.get(name, 1), name, path, whole=False)
    beginning = str(config.get("init_lora_weights"))
    if how := next((how for name, how in _CHANGED_BASES.items() if beginning.startswith(name)), None):
        raise ModelError(
            f"{path}: init_lora_weights is {beginning!r:.60}: its base is what {how}, which loading does not give back;"
            " save it as a plain LoRA adapter (path_initial_model_for_weight_conversion of PEFT's save_pretrained) or,"
            " where the base that it names is the changed one, set init_lora_weights to true"
        )
    for name in ("target_modules", "exclude_modules"):
        target = config.get(name)
        try:
            re.compile(target if isinstance(target, str) else "")
        except re.error as error:
            raise ModelError(f"{path}: {name} is {target!r:.60}, which is no regular expression: {error}") from error


def _check_number(value: object, name: str, path: Path, *, whole: bool) -> None:
    if not is_number(value) or (whole and (not isinstance(value, int) or value < 1)):
        expected = "a whole number above 0" if whole else "a finite number"
        raise ModelError(f"{path}: {name} is {value!r:.60}; expected {expected}")


@cache
def _kinds() -> frozenset[str]:
    """The kinds that the installed PEFT knows, read from its source, since importing it takes seconds."""
    package = find_spec("peft")
    if package is None or package.origin is None:
        return frozenset()
    try:
        tree = ast.parse((Path(package.origin).parent / "utils" / "peft_types.py").read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return frozenset()
    kinds = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "PeftType"), None)
    assigned = [node for node in kinds.body if isinstance(node, ast.Assign)] if kinds else []
    return frozenset(target.id for node in assigned for target in node.targets if isinstance(target, ast.Name))
