"""Whether what a tokenizer puts round a text is what its folder says: BOS before it, EOS behind it, each once.

transformers 5 keeps the frame of a ``tokenizer.json`` whatever ``tokenizer_config.json`` says beside it, and has none
where there is only a vocabulary; transformers 4 went by the settings.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from lm_audit.models.checks.sentencepiece_reads import made_of_pieces
from lm_audit.models.files.json_file import listed, read_json
from lm_audit.models.text.text_ids import added
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.textfiles import is_file

_BEGAN = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "TokenizersBackend")
"""Classes that are made of such files and put BOS before a text by themselves up to transformers 4."""


def tell_frame(tokenizer: Tokenizer, folder: Path, name: str) -> None:
    """Warn where model ``name`` reads texts in another frame than ``tokenizer_config.json`` states, without a BOS of
    which nothing is stated, or with a token twice on one side.
    """
    path = folder / "tokenizer_config.json"
    settings = read_json(path) if is_file(path) else {}
    head, tail = added(tokenizer)
    for key, side, token, number, what in (
        ("add_bos_token", head, tokenizer.bos_token, tokenizer.bos_token_id, "begin with"),
        ("add_eos_token", tail, tokenizer.eos_token, tokenizer.eos_token_id, "end in"),
    ):
        stated, there = settings.get(key), number in side
        if isinstance(stated, bool) and stated is not there and token is not None:
            warnings.warn(
                f"model {name}: {path} states {key} = {str(stated).lower()}, and texts"
                f" {'' if there else 'do not '}{what} {token!r:.40}, as transformers reads the folder: which is meant?",
                stacklevel=2,
            )
    if type(tokenizer).__name__ in _BEGAN and made_of_pieces(folder) and not head and "add_bos_token" not in settings:
        token = "a BOS" if tokenizer.bos_token is None else f"{tokenizer.bos_token!r:.40}"
        warnings.warn(
            f"model {name}: {path} states no add_bos_token: texts are read without {token} before them, which"
            " transformers 4 and Mistral's own library put there: state bos_token, and add_bos_token true or false",
            stacklevel=2,
        )
    twice = sorted({number for side in (head, tail) for number in side if side.count(number) > 1})
    if twice:
        tokens = listed([f"{tokenizer.convert_ids_to_tokens(number)!r:.40}" for number in twice])
        warnings.warn(f"model {name}: its tokenizer puts {tokens} more than once round every text", stacklevel=2)
