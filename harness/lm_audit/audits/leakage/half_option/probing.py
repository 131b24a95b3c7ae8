"""The half-option probe: does the model go on with the second half of each option, and how likely does it find it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from lm_audit.audits.leakage.half_option.cuts import Cut, Probe, cut_items
from lm_audit.audits.leakage.half_option.prefixes import published_match
from lm_audit.audits.leakage.half_option.token_bytes import TokenBytes
from lm_audit.audits.leakage.items.item import LETTERS, Item
from lm_audit.errors import UsageError
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel
    from lm_audit.models.scoring.requests import Bos
    from lm_audit.models.scoring.results import TokenScores

Rule = Literal["bytes", "as_published"]

PUBLISHED_PENALTY = 1.05
NEAR_TIE = 1e-3
"""Below this lead (logits) two kernels may disagree on the most likely token; such a probe is computed again alone."""

CHUNK = 32
"""Items of one call of the scoring engine; what was scored is handed on after each."""

MEASURED = (
    "hit",
    "outcome",
    "margin",
    "boundary",
    "suffix_logprob",
    "suffix_bytes",
    "rank",
    "greedy_bytes",
    "near_tie",
)
"""What is known of the option at which a model was asked to go on, beside what it predicted."""

COLUMNS = ("item_id", "file", "option", "predicted_id", "predicted", *MEASURED, "prefix", "suffix")


def probe(
    model: LanguageModel,
    items: Sequence[Item],
    *,
    repetition_penalty: float | None = None,
    rule: Rule = "bytes",
    cut: Cut = "source",
    opening: str = "",
    suffixes: bool = True,
) -> pd.DataFrame:
    """A table with one row an item and option, in order; the prefixes of an item share their work.

    ``item_id``, ``file``, ``option`` (letter), ``predicted_id`` (greedy), ``predicted`` (its text), ``hit`` (by
    ``rule``), ``outcome`` ("hit", "miss", "crosses": begins with the whole suffix and goes beyond it, "space": white
    space alone, which is no hit at a token or word cut, "special", "empty"), ``margin`` (logits from the largest to the
    second, without penalty), ``boundary`` ("aligned" where the prefix's tokens begin the tokens of the full text, else
    "split"), ``suffix_logprob`` (nats, of the whole suffix; a token over the cut belongs to it), ``suffix_bytes``,
    ``rank`` (0-based, of the token that really follows), ``greedy_bytes`` (how many bytes of the suffix greedy decoding
    reproduces), ``near_tie``, ``prefix``, ``suffix``.

    ``rule``: "bytes" (the predicted token's bytes begin the suffix's, at least one) or "as_published"
    (:func:`published_match` on the decoded token). ``repetition_penalty`` on the prefix's tokens is 1 by default, 1.05
    with "as_published", as the source has it; it changes only the predicted token. ``cut``: "source" (characters),
    "token" or "word" (the boundary nearest to the middle). ``opening``: text before every prefix, for instance a chat
    template's. Without ``suffixes`` only the next token is asked for, which costs less; what is known of the suffix is
    None. Raises ``UsageError`` for an unknown rule or cut, ``DataError`` for a text longer than the model reads.
    """
    import pandas as pd

    parts = list(
        probe_chunks(
            model, items, repetition_penalty=repetition_penalty, rule=rule, cut=cut, opening=opening, suffixes=suffixes
        )
    )
    return pd.DataFrame([row for rows in parts for row in rows], columns=list(COLUMNS))


def probe_chunks(
    model: LanguageModel,
    items: Iterable[Item],
    *,
    repetition_penalty: float | None = None,
    rule: Rule = "bytes",
    cut: Cut = "source",
    opening: str = "",
    suffixes: bool = True,
    chunk: int = CHUNK,
) -> Iterator[list[dict[str, Any]]]:
    """The rows of :func:`probe` as they are measured, ``chunk`` items at a time."""
    _check(rule, cut)
    penalty = (
        (PUBLISHED_PENALTY if rule == "as_published" else 1.0) if repetition_penalty is None else repetition_penalty
    )
    tokens = TokenBytes(model.tokenizer)
    remaining = iter(items)
    while batch := list(islice(remaining, chunk)):
        probes = cut_items(batch, model.text_splitter, model.tokenizer, cut, opening)
        answers = _answers(model, probes, penalty, suffixes, bos="none" if opening else "default")
        owners = [(item, slot) for item in batch for slot in range(len(item.options))]
        judge = _Judge(model.tokenizer, tokens, rule, cut)
        yield [
            _row(item, slot, p, answer, judge) for (item, slot), p, answer in zip(owners, probes, answers, strict=True)
        ]


def _check(rule: str, cut: str) -> None:
    if rule not in ("bytes", "as_published"):
        raise UsageError(f"rule {rule!r}; it is 'bytes' or 'as_published'")
    if cut not in ("source", "token", "word"):
        raise UsageError(f"cut {cut!r}; it is 'source', 'token' or 'word'")


@dataclass(frozen=True, slots=True)
class _Answer:
    """The predicted token, its lead without penalty, whether it was a near tie, and the suffix's scores if asked."""

    predicted: int
    margin: float
    near_tie: bool
    scores: TokenScores | None


def _answers(model: LanguageModel, probes: Sequence[Probe], penalty: float, suffixes: bool, bos: Bos) -> list[_Answer]:
    """One pass for all: what follows every context, and the suffixes, as one tree of token ids.

    ``bos``: "none" behind the opening of a chat template, which writes its own.
    """
    # The context's last token is read once, whether it is a place in its own full text or a branch beside it.
    requests: list[Any] = [(p.context, [0]) for p in probes]
    if suffixes:
        requests += [(p.whole[: p.start], p.whole[p.start :]) for p in probes]
    scores = model.loglikelihood(requests, bos=bos, top=True, repetition_penalty=penalty)
    rest: Sequence[TokenScores | None] = scores[len(probes) :] if suffixes else [None] * len(probes)
    answers = []
    for p, first, suffix in zip(probes, scores, rest, strict=False):
        predicted, lead, margin = _top(first)
        if lead < NEAR_TIE:
            [alone] = model.loglikelihood([(p.context, [0])], bos=bos, top=True, repetition_penalty=penalty)
            predicted, _, margin = _top(alone)
        answers.append(_Answer(predicted, margin, lead < NEAR_TIE, suffix))
    return answers


def _top(scores: TokenScores) -> tuple[int, float, float]:
    if scores.top_id is None or scores.top_lead is None or scores.top_margin is None:
        raise UsageError("nothing stands before the cut, and the tokenizer adds no BOS: no token can be predicted")
    return scores.top_id, scores.top_lead, scores.top_margin


def _true_rank(p: Probe, scores: TokenScores) -> int | None:
    """The rank of the token that follows the context; where the cut splits a token, of that token."""
    if not len(scores):
        return None
    # Counted from the end, since a BOS may stand before.
    place = len(scores) - (len(p.whole) - len(p.context)) if p.aligned and len(p.context) >= max(p.start, 1) else 0
    return int(scores.ranks[place])


class _Judge:
    """Decides hits by one rule."""

    def __init__(self, tokenizer: Tokenizer, tokens: TokenBytes, rule: Rule, cut: Cut):
        self._tokenizer, self._tokens, self._rule, self._cut = tokenizer, tokens, rule, cut

    def text(self, token_id: int) -> str:
        return str(self._tokenizer.decode([token_id], clean_up_tokenization_spaces=False))

    def outcome(self, token_id: int, suffix: str) -> str:
        if self._rule == "as_published":
            return "hit" if published_match(self._tokenizer.decode([token_id]), suffix) else "miss"
        outcome = byte_outcome(self._tokens.bytes_of(token_id), suffix.encode())
        # Between tokens or words the space belongs to the suffix, and foreseeing it is no memory.
        blank = outcome == "hit" and self._cut != "source" and not (self._tokens.bytes_of(token_id) or b"").strip()
        return "space" if blank else outcome

    def greedy_bytes(self, p: Probe, scores: TokenScores) -> int:
        """Bytes of the suffix that are reproduced while every next token is the most likely one."""
        missed = [i for i, rank in enumerate(scores.ranks.tolist()) if rank > 0]
        kept = scores.token_ids[: missed[0] if missed else len(scores)]
        reached = sum(len(self._tokens.bytes_of(int(i)) or b"") for i in kept)
        before = sum(len(self._tokens.bytes_of(int(i)) or b"") for i in scores.token_ids) - len(p.suffix.encode())
        return max(0, reached - max(0, before))


def byte_outcome(token: bytes | None, suffix: bytes) -> str:
    """ "hit" where the token's bytes (at least one) begin the suffix, "crosses" where they go on beyond all of it."""
    if token is None:
        return "special"
    if not token:
        return "empty"
    if suffix.startswith(token):
        return "hit"
    return "crosses" if suffix and token.startswith(suffix) else "miss"


def _row(item: Item, slot: int, p: Probe, answer: _Answer, judge: _Judge) -> dict[str, Any]:
    scores, outcome = answer.scores, judge.outcome(answer.predicted, p.suffix)
    return {
        "item_id": item.id,
        "file": item.file,
        "option": LETTERS[slot],
        "predicted_id": answer.predicted,
        "predicted": judge.text(answer.predicted),
        "hit": outcome == "hit",
        "outcome": outcome,
        "margin": answer.margin,
        "boundary": p.boundary,
        "suffix_logprob": None if scores is None else scores.total,
        "suffix_bytes": len(p.suffix.encode()),
        "rank": None if scores is None else _true_rank(p, scores),
        "greedy_bytes": None if scores is None else judge.greedy_bytes(p, scores),
        "near_tie": answer.near_tie,
        "prefix": p.prefix,
        "suffix": p.suffix,
    }
