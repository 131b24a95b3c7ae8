"""How long a text a model takes, as its files say, without torch: known when cases are collected."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lm_audit.errors import HarnessError
from lm_audit.models.context import Attributes, context_window
from lm_audit.models.files.adapter_folder import read_adapter
from lm_audit.models.files.checkpoint import model_folder
from lm_audit.models.files.config_file import read_config
from lm_audit.models.files.hub import is_settled
from lm_audit.models.gguf.header import read_header
from lm_audit.models.gguf.settings import stated_window
from lm_audit.models.spec import ModelSpec, parse_spec
from lm_audit.models.toy.smollm2 import find_smollm2


@cache
def stated_context(spec: str, *, trust_remote_code: bool = False) -> int | None:
    """The largest number of input tokens, None where the files here do not say or cannot be read.

    What loading would refuse is left to loading. The loaded model's own window decides in the end; the two agree
    wherever this one is known.
    """
    try:
        return _stated(parse_spec(spec), trust_remote_code)
    except (HarnessError, OSError):
        return None


def _stated(spec: ModelSpec, trust_remote_code: bool) -> int | None:
    if spec.kind == "tiny":
        from lm_audit.models.toy.tiny import TinySettings

        return TinySettings().context
    if spec.kind == "smollm2":
        return _of_gguf(find_smollm2())
    if spec.kind == "gguf" and spec.path is not None:
        return _of_gguf(spec.path)
    if spec.kind == "folder" or (spec.kind == "hub" and is_settled(spec)):
        folder = model_folder(spec)
        adapter = read_adapter(folder)
        if adapter is not None:
            return _stated(parse_spec(adapter.base), trust_remote_code)
        return context_window(Attributes(read_config(folder, trust_remote_code=trust_remote_code)))
    return None


def _of_gguf(path: Path) -> int | None:
    return stated_window(read_header(path), path)
