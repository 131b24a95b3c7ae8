"""A byte-level tokenizer as its GGUF file states it, and not as the class of its architecture would have it.

Tokens that the file marks as control or user-defined are one piece of a text each. llama.cpp writes them as they stand
in a text (``<｜User｜>``, four spaces), and not in the letters that byte-level BPE has for bytes; transformers spells
those with other letters anew, so that no text holds them. And the classes of some architectures (Qwen 2, Gemma) split
text by an expression of their own, whatever was saved.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lm_audit.models.files.json_file import read_json
from lm_audit.shared.textfiles import is_file

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
_AS_STATED = "lm_audit_as_stated"
_CONFIG = "tokenizer_config.json"
_NAMED = ("bos", "eos", "unk", "pad")
_KEYS = {"unk": "unknown", "pad": "padding"}


def as_stated(tokenizer: Any, path: Path) -> Any:
    """``tokenizer``, as transformers made it of ``path``, or one of no architecture that reads the file's tokens."""
    from gguf import GGUFReader
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import PreTrainedTokenizerFast

    alphabet = set(ByteLevel.alphabet())
    fields = GGUFReader(path).fields
    tokens = _contents(fields, "tokens") or []
    kinds = _contents(fields, "token_type") or [_NORMAL] * len(tokens)
    named = {name: _named(fields, name, len(tokens)) for name in _NAMED}
    cut = {
        number: (token, kind != _USER_DEFINED)
        for number, (token, kind) in enumerate(zip(tokens, kinds, strict=False))
        if (kind in (_CONTROL, _USER_DEFINED) or number in named.values()) and token and not set(token) <= alphabet
    }
    if not cut and type(tokenizer) is PreTrainedTokenizerFast:
        return tokenizer
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    if cut:
        _spell(content, cut, len(tokens))
    untyped: Any = PreTrainedTokenizerFast
    return untyped(
        tokenizer_object=_backend(content),
        chat_template=tokenizer.chat_template,
        clean_up_tokenization_spaces=False,
        **{f"{name}_token": tokens[number] for name, number in named.items() if number is not None},
    )


def mark_as_stated(folder: Path) -> None:
    """Say in a folder that its tokenizer.json is the tokenizer: transformers may take a class by the architecture."""
    path = folder / _CONFIG
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, _AS_STATED: True}, indent=1), encoding="utf-8")


def is_as_stated(folder: Path) -> bool:
    """Whether the tokenizer of a folder is to be read from its tokenizer.json alone."""
    return is_file(folder / _CONFIG) and read_json(folder / _CONFIG).get(_AS_STATED) is True


def _spell(content: Any, cut: dict[int, tuple[str, bool]], size: int) -> None:
    """Let ``content`` (of a ``tokenizer.json`` of ``size`` tokens) have the tokens ``cut`` as they stand in a text."""
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {cut.get(number, (token,))[0]: number for token, number in vocabulary.items()}
    texts = {token for token, _ in cut.values()}
    # What transformers could not find it put behind the end.
    kept = [one for one in content["added_tokens"] if one["id"] < size and one["content"] not in texts]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    kept += [{"id": number, "content": token, **flags, "special": control} for number, (token, control) in cut.items()]
    content["added_tokens"] = sorted(kept, key=lambda one: one["id"])
    content["post_processor"] = None  # it may frame texts by what stood behind the end


def _backend(content: Any) -> object:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(json.dumps(content))


def _contents(fields: Any, key: str) -> Any:
    field = fields.get(f"tokenizer.ggml.{key}")
    return None if field is None else field.contents()


def _named(fields: Any, name: str, size: int) -> int | None:
    number = _contents(fields, f"{_KEYS.get(name, name)}_token_id")
    return number if isinstance(number, int) and 0 <= number < size else None
