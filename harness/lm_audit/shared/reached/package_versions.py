"""The versions of the packages beneath, on which numbers hang as they do on the code."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version

PACKAGES = (
    "torch", "transformers", "tokenizers", "safetensors", "sentencepiece", "gguf", "peft", "trl", "accelerate",
    "datasets", "numpy", "scipy", "statsmodels", "scikit-learn", "pandas", "pyarrow", "huggingface-hub", "opacus",
    "jinja2", "nltk", "rouge-score", "tiktoken", "protobuf", "regex", "mistral-common", "triton", "kernels",
    "flash-attn", "flash-linear-attention", "causal-conv1d", "mamba-ssm", "bitsandbytes", "compressed-tensors",
    "gptqmodel", "autoawq", "optimum", "torchao",
)  # fmt: skip
"""Packages on which a number can hang."""


@cache
def versions() -> dict[str, str]:
    """The installed versions of :data:`PACKAGES` and of Python."""
    return {"python": platform.python_version(), **_found(PACKAGES)}


def versions_of_modules(names: Iterable[str]) -> dict[str, str]:
    """The versions of the distributions from which modules of these names come, by the names of the distributions."""
    found = {name: _version(name) for name in names}
    unknown = [name for name, number in found.items() if number is None]
    others = _distributions() if unknown else {}
    return {
        **{name: number for name, number in found.items() if number is not None},
        **_found(one for name in unknown for one in others.get(name, ())),
    }


def forget() -> None:
    """Look at what is installed anew."""
    for remembered in (versions, _version, _distributions):
        remembered.cache_clear()


def _found(names: Iterable[str]) -> dict[str, str]:
    return {name: number for name in names if (number := _version(name)) is not None}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):
        return None


@cache
def _distributions() -> dict[str, list[str]]:
    """By module the distributions that bring it: those of another name than their module's are found here alone."""
    return {module: sorted({*names}) for module, names in packages_distributions().items()}
