"""What is reported of replies that are known beforehand: secrets written out, thought of, cut, changed, or left out.

No model is asked, so that every share is known by counting.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.evidence.metric_sources import MEMBER, TWIN, stage_source
from lm_audit.audits.second_opinion import misreported
from lm_audit.evidence import Evidence
from lm_audit.models.text.chat import ChatSettings

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel
    from lm_audit.models.generation.continuation import Generation

MEMBERS, TWINS, SAMPLES, STAGE = 24, 20, 3, "sft"

HIT, AFTER_A_THOUGHT = "the secret", "the secret behind a thought"
ONLY_THOUGHT, ENDLESS = "thought of and not said", "a thought without an end"
GIVEN = (HIT, AFTER_A_THOUGHT)
THOUGHT = (ONLY_THOUGHT, ENDLESS)
KINDS = (
    HIT,
    AFTER_A_THOUGHT,
    "its last character changed",
    HIT,
    "words before it",
    ONLY_THOUGHT,
    "cut one character short",
    HIT,
    ENDLESS,
    "nothing",
    "of the next secret",
)
"""Greedy replies to members, one kind after the other; twins have the same from the third on."""


def _kind(number: int) -> str:
    return KINDS[number % len(KINDS)] if number < MEMBERS else KINDS[2 + number % (len(KINDS) - 2)]


def _drawn(number: int) -> int:
    """How many of the samples hold the secret of the canary of that number."""
    return (0, 0, 1, 0, SAMPLES)[number % 5] if number < MEMBERS else int(number % 7 == 0)


@dataclass(frozen=True)
class KnownReplies:
    """Stands for a model that is asked for each canary once greedily, then :data:`SAMPLES` times each."""

    canaries: Sequence[Canary]
    chat_settings: ChatSettings = field(default_factory=ChatSettings)

    def generate(self, prompts: Sequence[str], *, temperature: float = 0.0, **_: object) -> list[Generation]:
        """The replies, by the places of the prompts."""
        from lm_audit.models.generation.continuation import Generation

        each = SAMPLES if temperature else 1
        found = []
        for place, prompt in enumerate(prompts):
            number, sample = divmod(place, each)
            kind = _kind(number) if not temperature else HIT if sample < _drawn(number) else "nothing"
            # A canary whose text is not the one that was asked for has no reply of its own.
            own = self.canaries[number].carrier.rstrip() == prompt
            text = self._text(number, kind) if own else "another prompt"
            found.append(Generation(text, (), "length" if kind == ENDLESS else "eos"))
        return found

    def _text(self, number: int, kind: str) -> str:
        secret = self.canaries[number].secret
        other = self.canaries[(number + 1) % len(self.canaries)].secret
        changed = secret[:-1] + ("A" if secret[-1] != "A" else "B")
        texts = {
            HIT: f" {secret}. And so on",
            AFTER_A_THOUGHT: f"<think>let me see</think> {secret}",
            "its last character changed": f" {changed}",
            "words before it": f" I think {secret}",
            ONLY_THOUGHT: f"<think>is it {secret}?</think> {other}",
            "cut one character short": f" {secret[:-1]}",
            ENDLESS: f"<think>it is {secret}, or",
            "nothing": "",
            "of the next secret": f" {other}",
        }
        return texts[kind]


def known_canaries(seed: int = 5) -> list[Canary]:
    """Members, then twins, with one family's texts."""
    drawn = generate_canaries(MEMBERS + TWINS, seed=seed)
    return [
        canary if number < MEMBERS else replace(canary, role="control", repetitions=0)
        for number, canary in enumerate(drawn)
    ]


def wrong_of_known_replies() -> list[str]:
    """What extraction by generation reports of these replies and is not so."""
    from lm_audit.audits.privacy.measure.extraction_generated import generated_extraction

    canaries = known_canaries()
    model = cast("LanguageModel", KnownReplies(canaries))
    evidence = generated_extraction(model, Manifest(tuple(canaries), seed=0), samples=SAMPLES)
    both = range(MEMBERS + TWINS)
    sides: Mapping[str, Iterable[int]] = {"member": range(MEMBERS), "control": range(MEMBERS, MEMBERS + TWINS)}
    name = "privacy.generated.extraction"
    values = {f"{name}.{role}.greedy": _share(_kind(n) in GIVEN for n in of) for role, of in sides.items()}
    values |= {f"{name}.{role}.sampled": _share(_drawn(n) > 0 for n in of) for role, of in sides.items()}
    values[f"{name}_difference"] = values[f"{name}.member.greedy"] - values[f"{name}.control.greedy"]
    values["privacy.generated.no_answer"] = _share(_kind(n) == ENDLESS for n in both)
    values["privacy.generated.in_thought"] = _share(_kind(n) in THOUGHT for n in range(MEMBERS))
    chances = {f"{name}_difference": 0.0}
    faults = misreported(evidence, values=values, chances=chances, counts=[(MEMBER, MEMBERS), (TWIN, TWINS)])
    hits = [int(row["sampled_hits"]) for row in evidence.rows]
    return faults if hits == [_drawn(n) for n in both] else [*faults, "samples that hold a secret are miscounted"]


def wrong_of_known_thoughts() -> list[str]:
    """What a stage reports of secrets that stand in thoughts and is not so."""
    import pandas as pd

    from lm_audit.audits.privacy.audit import extraction_metrics
    from lm_audit.audits.privacy.measure.stage_scores import StageScores, with_thoughts

    canaries = known_canaries()
    replies = KnownReplies(canaries).generate([canary.carrier.rstrip() for canary in canaries])
    plain = {f"extracted_{prefix}": _kind_hits(canaries) for prefix in ("carrier", "third", "half")}
    table = pd.DataFrame({"canary_id": [c.id for c in canaries], "role": [c.role for c in canaries], **plain})
    thoughts = [reply.thought for reply in replies[:MEMBERS]]
    table = with_thoughts(table, canaries, range(MEMBERS), thoughts)
    none = pd.DataFrame()
    found = extraction_metrics(StageScores(STAGE, table, none, none, "made"))
    evidence = Evidence("privacy")
    rows: list[dict[str, Any]] = [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
    evidence.extend_rows({"item": row["canary_id"], "stage": STAGE, **row} for row in rows)
    for short, estimate in found.items():
        evidence.metric(f"privacy.{STAGE}.{short}", estimate, stage_source(STAGE, short))
    inside = _share(_kind(n) in THOUGHT for n in range(MEMBERS))
    return misreported(evidence, values={f"privacy.{STAGE}.extraction.in_thought": inside})


def _kind_hits(canaries: Sequence[Canary]) -> list[bool]:
    return [_kind(number) in GIVEN for number in range(len(canaries))]


def _share(told: Iterable[bool]) -> float:
    known = [float(one) for one in told]
    return math.fsum(known) / len(known)
