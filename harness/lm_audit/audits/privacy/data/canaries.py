"""Canaries: short texts with a secret that no other text holds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lm_audit.audits.privacy.data.families import FAMILIES, Family
from lm_audit.audits.privacy.data.seeded_stream import Stream
from lm_audit.audits.privacy.data.taken_secrets import Taken
from lm_audit.errors import UsageError

Role = Literal["member", "control"]
"""A member is put into the training text; a control (held-out twin) comes from the same generator and never is."""

_TRIES = 1000


@dataclass(frozen=True)
class Canary:
    """One canary: ``text[secret_span[0]:secret_span[1]] == secret``; ``repetitions`` is 0 for a control."""

    id: str
    family: str
    text: str
    secret: str
    secret_span: tuple[int, int]
    role: Role = "member"
    repetitions: int = 1

    @property
    def carrier(self) -> str:
        """The text before the secret."""
        return self.text[: self.secret_span[0]]

    @property
    def sha256(self) -> str:
        """SHA-256 of the text in UTF-8."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def generate_canaries(n: int, *, seed: int = 0, family: str = "code") -> list[Canary]:
    """``n`` canaries of one family, all members with one repetition; pure: the first n of n + m are the same.

    Texts, secrets and ids are unique, and no secret is a substring of another canary's text.
    Raises ``UsageError`` for n < 1, an unknown family, or a family too small for n.
    """
    if n < 1:
        raise UsageError(f"the number of canaries must be at least 1, got {n}")
    if family not in FAMILIES:
        raise UsageError(f"unknown canary family {family!r}; known families: {', '.join(FAMILIES)}")
    taken = Taken()
    return [_draw_unique(FAMILIES[family], seed, index, taken) for index in range(n)]


def _draw_unique(family: Family, seed: int, index: int, taken: Taken) -> Canary:
    for attempt in range(_TRIES):
        before, secret, after = family.draw(Stream(seed, "canary", family.name, index, attempt), index)
        text = before + secret + after
        if not taken.clashes(text, secret):
            taken.add(text, secret)
            span = (len(before), len(before) + len(secret))
            return Canary(f"{family.name}-{index:05d}", family.name, text, secret, span)
    raise UsageError(
        f"canary family {family.name!r} has no further unique secret after {index}; ask for fewer canaries"
    )


def plant_canaries(
    repetitions: Sequence[int], *, controls: int = 200, seed: int = 0, family: str = "code"
) -> list[Canary]:
    """Members with the given repetitions (one each) and held-out twins, roles assigned by a seeded shuffle.

    The number of members is fixed, so that no independent coins exist and a one-run epsilon is not identified; see
    :func:`flip_canaries`. Raises ``UsageError`` for a repetition below 1 or a negative number of controls.
    """
    if any(r < 1 for r in repetitions):
        raise UsageError(f"repetitions must be at least 1, got {min(repetitions)}")
    if controls < 0:
        raise UsageError(f"the number of held-out twins must not be negative, got {controls}")
    drawn = generate_canaries(len(repetitions) + controls, seed=seed, family=family)
    slots = Stream(seed, "roles", family).shuffled([*repetitions, *[0] * controls])
    return [_with_role(canary, count) for canary, count in zip(drawn, slots, strict=True)]


def flip_canaries(n: int, *, seed: int = 0, family: str = "code", repetitions: int = 1) -> list[Canary]:
    """``n`` canaries, each included by an independent fair coin: what an empirical epsilon needs."""
    if repetitions < 1:
        raise UsageError(f"repetitions must be at least 1, got {repetitions}")
    drawn = generate_canaries(n, seed=seed, family=family)
    return [_with_role(c, repetitions if Stream(seed, "coin", family, i).coin() else 0) for i, c in enumerate(drawn)]


def _with_role(canary: Canary, repetitions: int) -> Canary:
    return replace(canary, role="member" if repetitions else "control", repetitions=repetitions)


def tiers(count: int, levels: Sequence[int]) -> list[int]:
    """``count`` repetitions, spread evenly over the levels, lower levels first: 5, (1, 4) -> 1 1 1 4 4."""
    if not levels:
        raise UsageError("at least one repetition level is needed, for example 1,4,16")
    each, extra = divmod(count, len(levels))
    return [level for i, level in enumerate(levels) for _ in range(each + (i < extra))]


def members(canaries: Sequence[Canary]) -> list[Canary]:
    """The canaries that are trained on."""
    return [canary for canary in canaries if canary.role == "member"]


def controls(canaries: Sequence[Canary]) -> list[Canary]:
    """The held-out twins."""
    return [canary for canary in canaries if canary.role == "control"]


def secret_bits(canary: Canary) -> float:
    """Entropy of the secret in bits (NaN for a family this version does not know)."""
    family = FAMILIES.get(canary.family)
    return family.bits if family else math.nan
