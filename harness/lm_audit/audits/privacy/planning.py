"""What the privacy audit's cases will have behind their metrics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from lm_audit.audits.design import Design, PlanOptions
from lm_audit.audits.privacy.measured_cases import canary_limit
from lm_audit.stats.leaks.exposure import even_rank_bits

EXPOSURE_SD = 1.8
"""Of a member's bits, where members are like their twins: 1.44, of a long tail that the interval allows for."""


def designs(test: str, params: Mapping[str, object], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`."""
    members, twins, coins = _canaries(options)
    fewer, more = min(members, twins), max(members, twins)
    counted = f"canaries on the smaller side ({members} members, {twins} twins)"
    if test == "test_transition":
        yield Design("privacy.did", "difference", fewer, counted, unit="nats", chance=0.0, others=more,
                     headline=True)  # fmt: skip
    if test != "test_stage":
        return
    family = params.get("family")
    if family == "membership":
        yield Design("privacy.roc_auc", "auc", fewer, counted, low=0.0, high=1.0, chance=0.5, others=more,
                     headline=True)  # fmt: skip
        yield Design("privacy.tpr_at_*", "share", members, "members", low=0.0, high=1.0)
    elif family == "exposure":
        for times, count in _tiers(options, members).items():
            yield Design(f"privacy.exposure.r{times}", "mean", count, f"members of the tier r{times}", sd=EXPOSURE_SD,
                         low=0.0, high=math.log2(twins + 1), chance=even_rank_bits(twins + 1), unit="bits",
                         headline=True)  # fmt: skip
    elif family == "extraction":
        yield Design(
            "privacy.extraction.member.*", "share", members, "members", low=0.0, high=1.0, fewest=1, headline=True
        )
        yield Design("privacy.extraction.sampled", "share", members, "members", low=0.0, high=1.0)
    elif family == "stress":
        yield Design("privacy.stability", "mean", members, "members", low=0.0, high=1.0, headline=True)
    elif family == "source":
        yield Design("privacy.source.MIA_Gap", "test", members, "members", headline=True,
                     never="the figures of the source have no interval")  # fmt: skip
    elif family == "epsilon":
        never = None if coins else "members were not chosen by coins: no bound follows from them"
        yield Design(
            "privacy.epsilon*", "bound", members + twins, "canaries", fewest=1, low=0.0, never=never, headline=True
        )


def _tiers(options: PlanOptions, members: int) -> Mapping[int, int]:
    """Members by how often they were repeated; a limit leaves of each tier about its share."""
    if options.option("stages"):
        from lm_audit.audits.privacy.data.manifest import read_manifest

        found = Counter(canary.repetitions for canary in read_manifest(Path(str(options.option("manifest")))).members)
    else:
        from lm_audit.audits.privacy.stages.config import StagesConfig

        config = StagesConfig(seed=options.seed)
        levels = config.repetitions[:1] if config.assignment == "coins" else config.repetitions
        found = Counter(levels[number % len(levels)] for number in range(config.members))
    every = sum(found.values())
    return {times: count * members // every for times, count in sorted(found.items())}


def _canaries(options: PlanOptions) -> tuple[int, int, bool]:
    """Members, twins, and whether coins chose them: of the manifest that was given, else of the toy's config."""
    stages, manifest = options.option("stages"), options.option("manifest")
    if not stages:
        from lm_audit.audits.privacy.stages.config import StagesConfig

        config = StagesConfig(seed=options.seed)
        coins = config.assignment == "coins"
        drawn = (config.members + config.controls) // 2
        found = (drawn, drawn, True) if coins else (config.members, config.controls, False)
    else:
        found = _of_manifest(Path(str(manifest)))
    most = canary_limit(options.items(None))
    return found if most is None else (min(most, found[0]), min(most, found[1]), found[2])


def _of_manifest(path: Path) -> tuple[int, int, bool]:
    from lm_audit.audits.privacy.data.manifest import read_manifest

    found = read_manifest(path)
    return len(found.members), len(found.controls), found.assignment == "coins"
