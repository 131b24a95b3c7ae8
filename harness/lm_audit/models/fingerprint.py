"""Fingerprints: one hash for a model's weights and tokenizer, the same from files and from memory."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lm_audit.models.devices import SAFETENSORS_NAMES
from lm_audit.models.digests import combine_tensors, tensor_line


def combine_fingerprint(weights: str, tokenizer: str) -> str:
    """The fingerprint (32 hex digits) of a digest of the weights and one of the tokenizer."""
    return hashlib.sha256(f"weights {weights}\ntokenizer {tokenizer}".encode()).hexdigest()[:32]


def module_fingerprint(module: Any, tokenizer: Any) -> str:
    """The fingerprint of a model in memory; equal to that of its saved folder if saved in the same dtype."""
    return combine_fingerprint(module_digest(module), tokenizer_digest(tokenizer))


def module_digest(module: Any) -> str:
    """The digest of a module's weights, as :func:`lm_audit.models.digests.weights_digest` gives for its files."""
    tied = set(getattr(module, "all_tied_weights_keys", None) or ())
    named = ((name, value) for name, value in module.state_dict().items() if name not in tied)
    return combine_tensors(tensor_line(n, _dtype(v), tuple(v.shape), _bytes_digest(v)) for n, v in named)


def tokenizer_digest(tokenizer: Any) -> str:
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
    content = [rules, special, getattr(tokenizer, "chat_template", None)]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _dtype(value: Any) -> str:
    name = str(value.dtype).removeprefix("torch.")
    return SAFETENSORS_NAMES.get(name, name)


def _bytes_digest(value: Any) -> str:
    import torch

    data = value.detach().to("cpu").contiguous().flatten().view(torch.uint8)
    return hashlib.sha256(data.numpy()).hexdigest()
