"""Whether a model predicts plain English better than chance, which one whose weights are another's does not.

Where config and architectures agree on the wrong make and names and shapes fit, nothing in the files tells; what the
model says of an ordinary text does.
"""

from __future__ import annotations

import math
import warnings

import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import context_window
from lm_audit.models.loading.placement import embedding_device
from lm_audit.models.text.tokenizer import Tokenizer

TEXT = (
    "The old bridge over the river was closed in the spring, because the heavy rain had washed away part of the road."
    " People who lived on the other side had to drive for an hour to reach the nearest town, and many of them asked the"
    " council when the work would be finished."
)
_VOCABULARY = 8_000
"""Fewer tokens are those of toys, of letters or of another alphabet (proteins, notes, moves)."""
_MARGIN = 1.0
"""Nats a token beyond even odds: weights as they are drawn before training lie up to 0.8 beyond them."""


@torch.inference_mode()
def tell_nonsense(module: CausalModule, tokenizer: Tokenizer, name: str) -> None:
    """Warn where an English text of some sixty tokens is predicted worse than by even odds over the vocabulary.

    Costs one forward pass. Says nothing of small vocabularies, nor where the tokenizer does not know the text's words.
    """
    rows = int(module.get_input_embeddings().num_embeddings)
    if rows < _VOCABULARY:
        return
    ids = list(tokenizer(TEXT, add_special_tokens=False)["input_ids"])
    unknown = getattr(tokenizer, "unk_token_id", None)
    if len(ids) > 3 * len(TEXT.split()) or unknown in ids or max(ids) >= rows:
        return
    first = getattr(tokenizer, "bos_token_id", None)
    row = torch.tensor([[*([first] if first is not None else []), *ids]], device=embedding_device(module))
    row = row[:, : context_window(module.config)]
    logits = module(input_ids=row, use_cache=False).logits[0, :-1].float()
    loss = float(torch.nn.functional.cross_entropy(logits, row[0, 1:].to(logits.device)))
    if math.isfinite(loss) and loss > math.log(rows) + _MARGIN:
        warnings.warn(
            f"model {name} predicts plain English worse than chance ({loss:.1f} nats a token, {math.log(rows):.1f} by"
            f" even odds over its {rows:,} tokens): is it the make that its config names ({module.config.model_type})?"
            " Weights of another make, or scaled otherwise, do so; so may a model that was never trained on English",
            stacklevel=3,
        )
