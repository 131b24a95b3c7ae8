"""Log-probability of whole words after prompts, with the word-boundary correction as an option."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lm_audit.errors import UsageError
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pandas

    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring.requests import Bos

Boundary = Literal["ws", "wsp"]


def word_loglikelihood(
    model: LanguageModel,
    prompts: Sequence[str],
    words: Sequence[str],
    *,
    separator: str = " ",
    terminator: str = "",
    boundary: Boundary | None = None,
    bos: Bos = "default",
) -> pandas.DataFrame:
    """Every word after every prompt: a table with ``len(prompts) * len(words)`` rows, prompts outermost.

    Columns: ``prompt``, ``word``, ``ids`` (the word's tokens after the separator), ``tok_lp`` (nats each), ``lp``
    (their sum), ``boundary_merged``; with ``boundary`` also ``log_boundary_before`` and ``log_boundary_after`` (log
    mass of tokens that can begin the next word, at the prompt's end and after the word) and ``lp_corrected = lp +
    log_boundary_after - log_boundary_before`` (Pimentel and Meister 2024; Oh and Schuler 2024). The set of such tokens:
    special tokens and those that begin with ASCII white space ("ws"), and those that begin with ASCII punctuation other
    than ``- ' _`` ("wsp"; white space alone punishes words that end a sentence). ``bos`` as
    :meth:`~lm_audit.models.LanguageModel.loglikelihood` has it: "none" where a chat template made the prompts. Raises
    ``UsageError`` for an unknown boundary, or one with a language that writes no spaces.
    """
    import pandas

    if boundary not in (None, "ws", "wsp"):
        raise UsageError(f"boundary is {boundary!r}; None, 'ws' or 'wsp' is expected")
    if boundary and separator != " ":
        raise UsageError("a word boundary needs words that are separated by a space; use a terminator instead")
    pairs = [(prompt, word) for prompt in prompts for word in words]
    requests = [(prompt, separator + word + terminator) for prompt, word in pairs]
    scores = model.loglikelihood(requests, bos=bos)
    table = pandas.DataFrame(
        {
            "prompt": [prompt for prompt, _ in pairs],
            "word": [word for _, word in pairs],
            "ids": [score.token_ids.tolist() for score in scores],
            "tok_lp": [score.logprobs.tolist() for score in scores],
            "lp": [score.total for score in scores],
            "boundary_merged": [score.boundary_merged for score in scores],
        }
    )
    if boundary:
        ids = boundary_ids(model.tokenizer, boundary)
        before = model.next_token_log_mass([(prompt, "") for prompt in prompts], ids, bos=bos)
        table["log_boundary_before"] = np.repeat(before, len(words))
        table["log_boundary_after"] = model.next_token_log_mass(requests, ids, bos=bos)
        table["lp_corrected"] = table["lp"] + table["log_boundary_after"] - table["log_boundary_before"]
    return table


def boundary_ids(tokenizer: Tokenizer, boundary: Boundary) -> NDArray[np.int64]:
    """Ids of the tokens that can begin the next word, by the first byte of what they decode to."""
    first = string.whitespace + ("".join(set(string.punctuation) - set("-'_")) if boundary == "wsp" else "")
    added = {token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special}
    special = added | set(tokenizer.all_special_ids)
    found = [
        token_id
        for token_id in range(len(tokenizer))
        if token_id in special or tokenizer.decode([token_id])[:1] in tuple(first)
    ]
    return np.array(found, dtype=np.int64)
