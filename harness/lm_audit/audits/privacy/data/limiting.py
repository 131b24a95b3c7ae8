"""Fewer canaries than a manifest has: drawn by the seed, so that what they say holds of the others too."""

from __future__ import annotations

from dataclasses import replace

from lm_audit.audits.drawing import drawn
from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.audits.privacy.data.manifest import Manifest


def limited(manifest: Manifest, limit: int | None, *, seed: int) -> Manifest:
    """At most ``limit`` members and ``limit`` held-out twins, of every repetition level alike; all for ``None``.

    Canaries whose roles coins decided are drawn without a look at the role, twice as many: only then are they coins
    still, as a one-run epsilon needs them.
    """
    if limit is None:
        return manifest
    if manifest.assignment == "coins":
        return replace(manifest, canaries=tuple(drawn(manifest.canaries, 2 * limit, seed=seed)))
    kept = {canary.id for canary in (*_by_level(manifest, limit, seed), *drawn(manifest.controls, limit, seed=seed))}
    return replace(manifest, canaries=tuple(canary for canary in manifest.canaries if canary.id in kept))


def _by_level(manifest: Manifest, limit: int, seed: int) -> list[Canary]:
    """Members drawn level by level in turn, so that none is left out while another has several."""
    levels: dict[int, list[Canary]] = {}
    for member in drawn(manifest.members, None, seed=seed):
        levels.setdefault(member.repetitions, []).append(member)
    sizes = dict.fromkeys(levels, 0)
    for _ in range(min(limit, len(manifest.members))):
        # The level of which the fewest are taken, the most repeated first.
        level = min((key for key in levels if sizes[key] < len(levels[key])), key=lambda key: (sizes[key], -key))
        sizes[level] += 1
    return [member for level, own in levels.items() for member in drawn(own, sizes[level], seed=seed)]
