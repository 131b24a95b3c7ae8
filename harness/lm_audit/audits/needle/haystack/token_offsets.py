"""Token ids of a text, with the place of every token in it, for any kind of tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.models.text.text_ids import frame
from lm_audit.models.text.token_spans import encode_texts, tells_offsets
from lm_audit.models.text.tokenizer import Tokenizer

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Ids of a text; ``begins`` and ``ends`` are each token's character offsets, ``None`` where unknown."""

    ids: Integers
    begins: Integers | None
    ends: Integers | None

    def __len__(self) -> int:
        return len(self.ids)


class Encoder:
    """A ``transformers`` tokenizer (or one of ``tokenizers``) that encodes exactly, without truncation or warnings."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = _wrapped(tokenizer)
        self.has_offsets = tells_offsets(self.tokenizer)
        # An EOS behind the question would end the text before the answer.
        self._after = 0
        bare, full = self.encode("a").ids, self.encode("a", special=True).ids
        self._after = len(frame(bare.tolist(), full.tolist())[1])

    def encode(self, text: str, *, special: bool = False) -> Encoded:
        """The ids that a model is fed for ``text``; with ``special`` behind the BOS that it adds, never twice."""
        begins = ends = None
        if self.has_offsets:
            found = encode_texts(self.tokenizer, [text], special=special)[0]
            offsets = np.array(found.offsets, dtype=np.int64).reshape(-1, 2)
            begins, ends = offsets[:, 0], offsets[:, 1]
            ids = np.array(found.ids, dtype=np.int64)
        else:
            plain = self.tokenizer(text, add_special_tokens=special, truncation=False, verbose=False)
            ids = np.array(plain["input_ids"], dtype=np.int64)
        kept = slice(int(special and self._twice(ids)), len(ids) - (self._after if special else 0))
        return Encoded(
            ids[kept], begins[kept] if begins is not None else None, ends[kept] if ends is not None else None
        )

    def count(self, text: str, *, special: bool = False) -> int:
        """How many tokens the text has."""
        return len(self.encode(text, special=special))

    def _twice(self, ids: Integers) -> bool:
        """Whether text that spells BOS out (a rendered template) got a second one."""
        bos = getattr(self.tokenizer, "bos_token_id", None)
        return bos is not None and len(ids) > 1 and ids[0] == bos and ids[1] == bos


def _wrapped(tokenizer: Tokenizer) -> Any:
    if type(tokenizer).__module__.split(".")[0] != "tokenizers":
        return tokenizer
    from transformers import PreTrainedTokenizerFast

    wrapper: Any = PreTrainedTokenizerFast
    return wrapper(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)
