"""The tokenizer of a model, without its weights."""

from __future__ import annotations

from lm_audit.errors import UsageError
from lm_audit.models.files.checkpoint import (
    check_remote_code,
    model_folder,
)
from lm_audit.models.files.gguf.file import tokenizer_of
from lm_audit.models.files.source import Spec, find_source
from lm_audit.models.loading.spec import parse_spec
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.models.toy.smollm2 import find_smollm2


def load_tokenizer(spec: Spec, *, trust_remote_code: bool = False) -> Tokenizer:
    """The tokenizer of the model that ``spec`` names, without its weights."""
    from lm_audit.models.loading.module import load_tokenizer_from

    parsed = parse_spec(spec)
    if parsed.kind == "endpoint":
        raise UsageError(f"{parsed.text}: the tokenizer of a served model comes with load_model")
    if parsed.kind == "hub":
        folder = model_folder(parsed)
        if (folder / "config.json").exists():
            check_remote_code(folder, trust_remote_code=trust_remote_code)
            return load_tokenizer_from(folder, trust_remote_code)
    if parsed.kind == "smollm2" or (parsed.kind == "gguf" and parsed.path is not None):
        return load_tokenizer_from(tokenizer_of(parsed.path or find_smollm2()), trust_remote_code)
    source = find_source(parsed, trust_remote_code=trust_remote_code)
    return load_tokenizer_from(source.tokenizer_folder, trust_remote_code)
