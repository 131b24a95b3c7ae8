"""Fingerprints: one hash for all that makes a model answer as it does, the same from files and from memory.

Weights, configuration, generation configuration, tokenizer with its chat template and, of an adapter, its tensors and
settings. Where the files lie, which library wrote them and in which dtype they are used does not enter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import ATTENTION_SETTINGS, tied_names
from lm_audit.models.loading.devices import SAFETENSORS_NAMES
from lm_audit.models.loading.identity.digests import combine_tensors, tensor_line
from lm_audit.models.text.tokenizer import Tokenizer

_VOLATILE = frozenset(
    {
        "_name_or_path",
        "_commit_hash",
        "_from_model_config",
        *ATTENTION_SETTINGS,
        "_experts_implementation",
        "architectures",
        "auto_map",
        "dtype",
        "torch_dtype",
        "transformers_version",
        "transformers_weights",
        "use_cache",
        "id2label",
        "label2id",
        "problem_type",
    }
)
"""Fields of a configuration that say who wrote it, what is done with it, or name classes; none changes an answer."""

_PROBES = ("a", " a b  c", "Hello, wörld! 123456\n\n東京 don't", "<s> </s> x", "def f(x):\n\treturn x**2  # 0.5")


def combine_fingerprint(weights: str, settings: str, tokenizer: str) -> str:
    """The fingerprint (32 hex digits) of digests of the weights, of the configurations and of the tokenizer."""
    text = f"weights {weights}\nsettings {settings}\ntokenizer {tokenizer}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def module_fingerprint(module: CausalModule, tokenizer: Tokenizer) -> str:
    """The fingerprint of a model in memory; equal to that of its saved folder if saved in the same dtype."""
    return combine_fingerprint(module_digest(module), settings_digest(module), tokenizer_digest(tokenizer))


def module_digest(module: CausalModule) -> str:
    """The weights' digest, as :func:`lm_audit.models.loading.identity.digests.weights_digest` has it of files."""
    tied = tied_names(module)
    named = ((name, value) for name, value in module.state_dict().items() if name not in tied)
    return combine_tensors(tensor_line(n, _dtype(v), tuple(v.shape), _bytes_digest(v)) for n, v in named)


def settings_digest(module: CausalModule) -> str:
    """A hash of a module's configuration and generation configuration, as loaded: a spelt-out default is none."""
    content = [_settings(getattr(module, name, None)) for name in ("config", "generation_config")]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _settings(config: object) -> Any:
    if config is None or not hasattr(config, "to_diff_dict"):
        return None
    defaults = config.default_config_fields() if hasattr(config, "default_config_fields") else {}
    return _lasting({key: v for key, v in config.to_diff_dict().items() if key not in defaults or defaults[key] != v})


def _lasting(value: object) -> Any:
    """Without volatile fields and without those that are not set, at every depth."""
    if isinstance(value, Mapping):
        return {str(k): _lasting(v) for k, v in value.items() if k not in _VOLATILE and v is not None}
    return [_lasting(item) for item in value] if isinstance(value, list | tuple) else value


def tokenizer_digest(tokenizer: Tokenizer) -> str:
    """A hash of what a tokenizer does: its model and rules, special tokens and chat template; not of its paths."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        rules: Any = (
            sorted(tokenizer.get_vocab().items()) if hasattr(tokenizer, "get_vocab") else type(tokenizer).__name__
        )
    else:
        rules = json.loads(backend.to_str())
        # Set by whoever padded or cut last: a matter of the call, not of the tokenizer.
        rules.pop("truncation", None)
        rules.pop("padding", None)
    special = {name: str(value) for name, value in getattr(tokenizer, "special_tokens_map", {}).items()}
    # What the class does in Python (adds BOS, splits special tokens) shows in what it makes of a few texts.
    texts = [*_PROBES, "x".join(sorted({*special.values()}))]
    made = [list(tokenizer(text).input_ids) for text in texts] if callable(tokenizer) else []
    content = [rules, special, getattr(tokenizer, "chat_template", None), made]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _dtype(value: Any) -> str:
    name = str(value.dtype).removeprefix("torch.")
    return SAFETENSORS_NAMES.get(name, name)


def _bytes_digest(value: Any) -> str:
    import torch

    data = value.detach().to("cpu").contiguous().flatten().view(torch.uint8)
    return hashlib.sha256(data.numpy()).hexdigest()
