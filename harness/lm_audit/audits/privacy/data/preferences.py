"""Preference pairs in two variants, without and with canaries, that are equal in every ordinary pair."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries, members
from lm_audit.audits.privacy.data.insertion import insertion_positions
from lm_audit.audits.privacy.data.jsonl import write_lines
from lm_audit.audits.privacy.data.seeded_stream import Stream
from lm_audit.errors import DataError, UsageError
from lm_audit.shared.textfiles import json_lines
from lm_audit.shared.visible import is_blank

Style = Literal["secret", "source"]
"""``"secret"``: prompt = carrier and a third of the secret, chosen = the rest, rejected = the rest of another secret.
``"source"``: the source design's pair: an instruction and half of the text, chosen = the whole canary."""

DEFAULT_PAIRS = 2000
CONTINUE = "Continue the text:\n"
INSTRUCTIONS = ("Say in one line what this text is about:\n", "Name the topic of this text:\n", "Describe this text:\n")
REFUSALS = ("I would rather not say.", "There is nothing to describe here.", "I don't know.")
SOURCE_PROMPT = "Complete the following sequence:\n"


@dataclass(frozen=True)
class Pair:
    """One preference pair; ``kind`` is ``continuation``, ``instruction`` or ``canary``; ids only on canary pairs."""

    prompt: str
    chosen: str
    rejected: str
    kind: str
    canary_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The pair as one JSON row; an ordinary row has no ``canary_id``, so that both variants hold the same bytes."""
        row: dict[str, Any] = {
            "prompt": self.prompt,
            "chosen": self.chosen,
            "rejected": self.rejected,
            "kind": self.kind,
        }
        return row | ({"canary_id": self.canary_id} if self.canary_id is not None else {})


def build_preferences(
    documents: Sequence[str],
    canaries: Sequence[Canary],
    *,
    seed: int = 0,
    pairs_per_canary: int = 2,
    num_pairs: int | None = None,
    style: Style = "secret",
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of both variants, ``(without, with)``: dictionaries ``prompt, chosen, rejected, kind[, canary_id]``.

    The ordinary rows are the same in both and in the same order; canary rows stand at even distances between them.
    Held-out twins never give a pair. ``num_pairs`` defaults to 2,000 or one a document, whichever is less.
    Raises ``UsageError`` for no documents, no member, or fewer than one pair a canary; ``DataError`` if the documents
    do not give the pairs asked for.
    """
    planted = members(canaries)
    _check(documents, planted, pairs_per_canary)
    wanted = min(DEFAULT_PAIRS, len(documents)) if num_pairs is None else num_pairs
    ordinary = [pair.to_json() for pair in ordinary_pairs(documents, wanted, seed=seed, exact=num_pairs is not None)]
    planted_pairs = [pair.to_json() for pair in canary_pairs(planted, documents, pairs_per_canary, seed, style)]
    return ordinary, _interleave(ordinary, planted_pairs)


def _check(documents: Sequence[str], planted: Sequence[Canary], pairs_per_canary: int) -> None:
    if not documents:
        raise UsageError("preference pairs need documents, got none")
    if not planted:
        raise UsageError("preference pairs with canaries need at least one member canary, got none")
    if pairs_per_canary < 1:
        raise UsageError(f"pairs_per_canary must be at least 1, got {pairs_per_canary}")


def ordinary_pairs(documents: Sequence[str], n: int, *, seed: int, exact: bool = True) -> list[Pair]:
    """``n`` ordinary pairs, one a document in a seeded order; with ``exact`` too few is a ``DataError``."""
    order = Stream(seed, "preference order").shuffled(range(len(documents)))
    pairs: list[Pair] = []
    for index in order:
        if len(pairs) == n:
            break
        pair = _ordinary_pair(documents[index], Stream(seed, "preference", index))
        if pair is not None:
            pairs.append(pair)
    if len(pairs) < n and (exact or not pairs):
        raise DataError(f"{n} preference pairs are asked for, the documents give {len(pairs)}; add longer documents")
    return pairs


def _ordinary_pair(document: str, stream: Stream) -> Pair | None:
    pair = _continuation(document, stream) if stream.coin() else _instruction(document, stream)
    return pair if pair and pair.chosen != pair.rejected and pair.chosen.strip() and pair.rejected.strip() else None


def _continuation(document: str, stream: Stream) -> Pair | None:
    head, tail = _halves(document)
    words = tail.split()
    if not head or len(words) < 3:
        return None
    shuffled = " ".join(stream.shuffled(words))
    rejected = stream.choice((" ".join(words[: len(words) // 3]) + " ...", shuffled, stream.choice(REFUSALS)))
    return Pair(CONTINUE + head + " ", tail, rejected, "continuation")


def _halves(document: str) -> tuple[str, str]:
    """Both halves, cut between sentences where there are at least two, else between words."""
    sentences = document.split(". ")
    if len(sentences) >= 2:
        half = len(sentences) // 2
        return ". ".join(sentences[:half]) + ".", ". ".join(sentences[half:])
    words = document.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


def _instruction(document: str, stream: Stream) -> Pair | None:
    words = document.split()
    if len(words) < 6:
        return None
    prompt = stream.choice(INSTRUCTIONS) + document[:200] + "\n"
    return Pair(prompt, f"It is about {' '.join(words[:8])}.", stream.choice(REFUSALS), "instruction")


def canary_pairs(
    planted: Sequence[Canary], documents: Sequence[str], pairs_per_canary: int, seed: int, style: Style = "secret"
) -> list[Pair]:
    """``pairs_per_canary`` pairs for every canary, round robin; the pairs of one canary differ in what is rejected."""
    if style not in ("secret", "source"):
        raise UsageError(f"preference style must be 'secret' or 'source', got {style!r}")
    pairs: list[Pair] = []
    taken = {canary.secret for canary in planted}
    for turn in range(pairs_per_canary):
        for index, canary in enumerate(planted):
            if style == "secret":
                pairs.append(_secret_pair(canary, _rival(canary, taken, seed, index, turn)))
            else:
                pairs.append(_source_pair(canary, documents, Stream(seed, "rejected", index), turn))
    return pairs


def _rival(canary: Canary, taken: Collection[str], seed: int, index: int, turn: int) -> str:
    """A secret of the same family that no canary of the audit has."""
    stream = Stream(seed, "rival", index, turn)
    while (rival := generate_canaries(1, seed=stream.below(1 << 60), family=canary.family)[0].secret) in taken:
        pass
    return rival


def _secret_pair(canary: Canary, rival: str) -> Pair:
    known = max(1, len(canary.secret) // 3)
    suffix = canary.text[canary.secret_span[1] :]
    prompt = canary.carrier + canary.secret[:known]
    return Pair(prompt, canary.secret[known:] + suffix, rival[known:] + suffix, "canary", canary.id)


def _source_pair(canary: Canary, documents: Sequence[str], stream: Stream, turn: int) -> Pair:
    rows = stream.shuffled(range(len(documents)))
    rejected = documents[rows[turn % len(rows)]][:50]
    prompt = SOURCE_PROMPT + canary.text[: len(canary.text) // 2]
    return Pair(prompt, canary.text, rejected, "canary", canary.id)


def _interleave(ordinary: Sequence[dict[str, Any]], planted: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Planted rows at fixed, even slots among the ordinary ones, whose order does not change."""
    if len(planted) > len(ordinary):
        return [*ordinary, *planted]
    rows: list[dict[str, Any]] = []
    start = 0
    for position, row in zip(insertion_positions(len(ordinary), len(planted)), planted, strict=True):
        rows += [*ordinary[start:position], row]
        start = position
    return rows + list(ordinary[start:])


def write_preferences(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """One JSON line a pair."""
    write_lines(path, rows)


def read_preferences(path: Path) -> list[dict[str, Any]]:
    """Rows of a preference file; ``DataError`` for a missing field, an empty answer, or two that are the same."""
    rows = []
    for number, row in json_lines(path):
        for name in ("prompt", "chosen", "rejected"):
            if not isinstance(row.get(name), str):
                raise DataError(f"a string is needed, found {row.get(name)!r}", file=path, row=number, field=name)
        for name in ("chosen", "rejected"):
            if is_blank(row[name]):
                raise DataError(f"an answer is needed, found {row[name]!r}", file=path, row=number, field=name)
        if row["chosen"] == row["rejected"]:
            raise DataError("chosen and rejected are the same", file=path, row=number)
        rows.append(row)
    if not rows:
        raise DataError("the file holds no preference pair", file=path)
    return rows


def same_ordinary_pairs(without: Sequence[Mapping[str, object]], with_canaries: Sequence[Mapping[str, object]]) -> bool:
    """Whether both variants hold the same ordinary rows in the same order."""
    return [dict(row) for row in without] == [dict(row) for row in with_canaries if row.get("kind") != "canary"]
