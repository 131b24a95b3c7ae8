"""Whether a tokenizer reads text as the SentencePiece model that it was made of, where there is no tokenizer.json.

transformers makes classes of such a file by rules of their own: Llama's takes every model for one of merges that keeps
white space, whatever the file says of its kind and of how it changes text.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import read_json
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.textfiles import is_file

_SHARE = 0.01
"""Of the pieces of a file that lies beside a tokenizer.json of its own: some are renamed."""


def sentencepiece_file(folder: Path) -> Path | None:
    """The one SentencePiece model in ``folder``, by its ending."""
    models = [path for path in sorted(folder.glob("*.model")) if is_file(path)]
    return models[0] if len(models) == 1 else None


def made_of_pieces(folder: Path) -> bool:
    """Whether the tokenizer of ``folder`` is made of a SentencePiece model, or of Mistral's file: no tokenizer.json."""
    if is_file(folder / "tokenizer.json"):
        return False
    return sentencepiece_file(folder) is not None or is_file(folder / "tekken.json")


def read_otherwise(tokenizer: Tokenizer, path: Path, texts: Iterable[str]) -> str:
    """The first of ``texts`` that file and class cut into other pieces, and how; "" where there is none.

    Numbers are not compared: some classes move them on purpose (CamemBERT's). Nor is a file of another kind (tiktoken).
    """
    stated = _read(path)
    if stated is None:
        return ""
    unknown = getattr(tokenizer, "unk_token", None)
    for text in texts:
        numbers = stated.EncodeAsIds(text)
        wanted = [unknown if stated.IsUnknown(one) else stated.IdToPiece(one) for one in numbers]
        ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
        found = tokenizer.convert_ids_to_tokens(ids)
        if wanted != found and numbers != ids:
            return (
                f"reads {text!r} as {wanted!r:.120}; {type(tokenizer).__name__}, which transformers makes of it, reads"
                f" it as {found!r:.120}"
            )
    return ""


def of_another(tokenizer: Tokenizer, path: Path) -> str:
    """What is to be told of a SentencePiece model beside a tokenizer.json that has not its pieces; else ""."""
    stated = _read(path)
    if stated is None:
        return ""
    vocabulary = tokenizer.get_vocab()
    pieces = [stated.IdToPiece(number) for number in range(stated.GetPieceSize()) if not stated.IsUnused(number)]
    absent = [piece for piece in pieces if piece not in vocabulary]
    return _another(absent, f"that has {len(absent):,} of its {len(pieces):,} pieces not", len(pieces))


def of_another_tekken(tokenizer: Tokenizer, path: Path) -> str:
    """The same of Mistral's file, whose numbers are those of the tokenizer.json that is made of it."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    untyped: Any = bytes_to_unicode
    try:
        content = read_json(path)
        own = int(content["config"]["default_num_special_tokens"])
        used = content["vocab"][: int(content["config"]["default_vocab_size"]) - own]
        letters = untyped()
        pieces = {
            "".join(letters[byte] for byte in base64.b64decode(one["token_bytes"])): own + int(one["rank"])
            for one in used
        }
    except (KeyError, TypeError, ValueError, ModelError):  # no file of Mistral's, or one that is damaged: not read
        return ""
    vocabulary = tokenizer.get_vocab()
    moved = [piece for piece, number in pieces.items() if vocabulary.get(piece) != number]
    return _another(moved, f"that numbers {len(moved):,} of its {len(pieces):,} tokens otherwise", len(pieces))


def _another(absent: Sequence[str], how: str, size: int) -> str:
    if len(absent) <= max(4, _SHARE * size):
        return ""
    shown = ", ".join(repr(piece)[:40] for piece in absent[-3:])
    return (
        f"is another tokenizer's than the tokenizer.json beside it, which is read: {how} ({shown}); which is the"
        " model's?"
    )


def _read(path: Path) -> Any:
    """The SentencePiece model of a file; ``None`` for a file of another kind (tiktoken), or one that is damaged."""
    from sentencepiece import SentencePieceProcessor

    stated: Any = SentencePieceProcessor()
    try:
        stated.Load(str(path))
    except (RuntimeError, OSError):
        return None
    return stated
