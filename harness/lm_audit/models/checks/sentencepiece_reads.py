"""Whether a tokenizer reads text as the SentencePiece model that it was made of, where there is no tokenizer.json.

transformers makes classes of such a file by rules of their own: Llama's takes every model for one of merges that keeps
white space, whatever the file says of its kind and of how it changes text.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.textfiles import is_file


def sentencepiece_file(folder: Path) -> Path | None:
    """The one SentencePiece model in ``folder``, by its ending; ``None`` where a tokenizer.json is read instead."""
    if is_file(folder / "tokenizer.json"):
        return None
    models = [path for path in sorted(folder.glob("*.model")) if is_file(path)]
    return models[0] if len(models) == 1 else None


def read_otherwise(tokenizer: Tokenizer, path: Path, texts: Iterable[str]) -> str:
    """The first of ``texts`` that file and class cut into other pieces, and how; "" where there is none.

    Numbers are not compared: some classes move them on purpose (CamemBERT's). Nor is a file of another kind (tiktoken).
    """
    from sentencepiece import SentencePieceProcessor

    stated: Any = SentencePieceProcessor()
    try:
        stated.Load(str(path))
    except (RuntimeError, OSError):
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
