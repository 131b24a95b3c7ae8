"""The versions of the packages beneath, on which numbers hang as they do on the code.

A version tells what an index hands out. What was installed from a repository or a folder keeps its version while its
code changes (``5.0.0.dev0``): there the commit, or what the installed files are, stands behind it.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions

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
        found = distribution(name)
        number: str | None = found.version
    except (PackageNotFoundError, ValueError, KeyError):
        return None
    return None if number is None else f"{number}{_behind(found)}"


def _behind(found: Distribution) -> str:
    """What tells apart two installations of one version that come from a repository or a folder, else nothing.

    Of an editable one the sources themselves tell (:mod:`lm_audit.shared.reached.sources`).
    """
    try:
        source = json.loads(found.read_text("direct_url.json") or "{}")
        folder, commit = source.get("dir_info"), (source.get("vcs_info") or {}).get("commit_id")
        if commit is None and (folder is None or folder.get("editable")):
            return ""
    except (ValueError, AttributeError, OSError):
        return ""
    # Scripts lie above and name the interpreter of one machine; compiled files are listed without a digest.
    record = (line for line in (found.read_text("RECORD") or "").splitlines() if not line.startswith(".."))
    files = sorted(line for line in record if ",sha256=" in line and ".dist-info/" not in line)
    return f"@{str(commit)[:12] if commit else hashlib.sha256(chr(10).join(files).encode()).hexdigest()[:12]}"


@cache
def _distributions() -> dict[str, list[str]]:
    """By module the distributions that bring it: those of another name than their module's are found here alone."""
    return {module: sorted({*names}) for module, names in packages_distributions().items()}
