"""Extraction: does the model give back a canary from its first tokens? Exact match on token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.audits.privacy.measure.token_scores import TextScores, score_tokens
from lm_audit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring import Bos

Prefix = int | str
"""Number of prefix tokens, ``"half"`` (floor(n / 2)), ``"carrier"``: all tokens before those of the secret, or
``"third"``: also the tokens that lie wholly within the first third of the secret's characters."""


def extraction(
    model: LanguageModel,
    canaries: Sequence[Canary | str],
    *,
    prefix_tokens: Prefix | Sequence[Prefix] = "half",
    samples: int = 0,
    temperature: float = 1.0,
    seed: int = 0,
    bos: Bos = "default",
    scores: Sequence[TextScores] | None = None,
) -> pd.DataFrame:
    """A table with one row a canary and prefix length.

    ``prefix_len``, ``suffix_len`` (tokens); ``matched_prefix_tokens``: suffix tokens that greedy decoding gives back
    before the first miss; ``teacher_forced_argmax_matches``; ``exact``: the whole suffix comes back greedily;
    ``n_samples``, ``sampled_hits``, ``sampled_exact``: of ``samples`` continuations at ``temperature``, how many
    (any) match exactly. Greedy needs no generation: with the prefix fed as ids, arg-max under teacher forcing and
    greedy decoding agree up to the first miss. ``scores`` reuses token scores at hand. Raises ``UsageError`` for a
    prefix outside 1 .. n-1 tokens.
    """
    import pandas as pd

    texts = [canary if isinstance(canary, str) else canary.text for canary in canaries]
    scored = list(scores) if scores is not None else score_tokens(model, texts, bos=bos)
    prefixes = [prefix_tokens] if isinstance(prefix_tokens, int | str) else list(prefix_tokens)
    rows = [
        _greedy_row(canary, score, prefix)
        for prefix in prefixes
        for canary, score in zip(canaries, scored, strict=True)
    ]
    if samples:
        ids = [score.encoded.ids for _ in prefixes for score in scored]
        _add_samples(model, rows, ids, samples=samples, temperature=temperature, seed=seed, bos=bos)
    return pd.DataFrame(rows)


def _greedy_row(canary: Canary | str, scores: TextScores, prefix: Prefix) -> dict[str, object]:
    position = prefix_length(canary, scores, prefix)
    ranks = scores.ranks[position - scores.first :]
    matched = scores.greedy_from(position)
    return {
        "item": canary if isinstance(canary, str) else canary.id,
        "prefix": str(prefix),
        "prefix_len": position,
        "suffix_len": len(ranks),
        "matched_prefix_tokens": matched,
        "teacher_forced_argmax_matches": int((ranks == 0).sum()),
        "exact": matched == len(ranks),
    }


def prefix_length(canary: Canary | str, scores: TextScores, prefix: Prefix) -> int:
    """The prefix in tokens; ``UsageError`` unless at least one token stands on either side."""
    n = len(scores.encoded.ids)
    if prefix == "half":
        length = n // 2
    elif prefix in ("carrier", "third") and not isinstance(canary, str):
        start, end = canary.secret_span
        known = start + (end - start) // 3 if prefix == "third" else start
        hidden = scores.encoded.tokens_in((known, end))
        length = max(scores.first, hidden[0]) if hidden else n
    elif isinstance(prefix, int):
        length = prefix
    else:
        raise UsageError(
            f"prefix_tokens must be a number, 'half' or (for canaries) 'carrier' or 'third', got {prefix!r}"
        )
    if not scores.first <= length < n or length < 1:
        raise UsageError(f"a prefix of {length} tokens does not fit a text of {n} tokens: {scores.encoded.text[:60]!r}")
    return length


def _add_samples(
    model: LanguageModel,
    rows: Sequence[dict[str, object]],
    ids: Sequence[tuple[int, ...]],
    *,
    samples: int,
    temperature: float,
    seed: int,
    bos: Bos,
) -> None:
    head = bos_ids(model, bos)
    hits = [0] * len(rows)
    groups: Mapping[int, list[int]] = _by_suffix(rows)
    for length, members in groups.items():
        prompts = [[*head, *ids[i][: int(str(rows[i]["prefix_len"]))]] for i in members for _ in range(samples)]
        found = model.generate(prompts, max_new_tokens=length, temperature=temperature, seed=seed)
        for k, generation in enumerate(found):
            i = members[k // samples]
            hits[i] += tuple(generation.token_ids)[:length] == ids[i][-length:]
    for row, count in zip(rows, hits, strict=True):
        row |= {"n_samples": samples, "sampled_hits": count, "sampled_exact": count > 0}


def _by_suffix(rows: Sequence[dict[str, object]]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(int(str(row["suffix_len"])), []).append(i)
    return groups


def bos_ids(model: LanguageModel, bos: Bos) -> list[int]:
    """Token ids that ``bos`` puts before a text."""
    from lm_audit.models.scoring.requests import default_bos

    if bos == "default":
        return list(default_bos(model.tokenizer))
    return [] if bos == "none" else [int(bos)]
