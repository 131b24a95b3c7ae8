"""Whether a GGUF file is a whole causal language model of an architecture that can be converted."""

from __future__ import annotations

from pathlib import Path

from lm_audit.errors import ModelError
from lm_audit.models.compat import gguf_architectures
from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.table import recipe_of

_BY_TRANSFORMERS = frozenset(
    [
        *("bloom", "deci", "falcon", "gemma2", "gemma3", "gemma4", "gpt2"),
        *("lfm2", "llama", "mamba", "minimax-m2", "mistral", "nemotron", "phi3"),
        *("qwen2", "qwen3", "qwen35", "qwen35moe", "qwen3moe", "stablelm", "starcoder2"),
    ]
)
"""What transformers 5.24 converts; it is asked for others, which loads torch."""

_NO_TEXT = ("clip", "mmproj", "wavtokenizer-dec")
_ENCODERS = ("gemma-embedding", "llama-embed", "t5", "t5encoder")


def check_known(header: GgufHeader, path: Path) -> None:
    """``ModelError`` for a part of a split file, what is no causal model, and an architecture that nobody converts."""
    parts, name = header.metadata.get("split.count"), header.architecture
    if isinstance(parts, int) and parts > 1:
        number = header.metadata.get("split.no")
        which = f"part {number + 1} of {parts}" if isinstance(number, int) else f"one of {parts} parts"
        raise ModelError(
            f"{path} is {which} of a model: join them (llama-gguf-split --merge FIRST-PART WHOLE.gguf) and name the"
            " whole"
        )
    if name in _NO_TEXT:
        raise ModelError(f"{path} is what a model sees or hears by ({name!r}), not the model: name its own file")
    if name in _ENCODERS or "bert" in name:
        raise ModelError(
            f"{path} is of the architecture {name!r:.40}, which is no causal language model; only those are audited"
        )
    if (
        recipe_of(header) is None
        and name not in _BY_TRANSFORMERS
        and name.replace("-", "_") not in gguf_architectures()
    ):
        raise ModelError(
            f"{path} is of the architecture {name!r:.40}, whose files are not converted here: name the folder or hub id"
            " of the original model"
        )
