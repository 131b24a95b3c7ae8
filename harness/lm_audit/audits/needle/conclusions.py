"""What the needle audit concludes: where needles are no longer found."""

from __future__ import annotations

from collections.abc import Mapping

from lm_audit.evidence import Evidence
from lm_audit.findings import Finding, claim
from lm_audit.stats import Estimate

_PAGE = "needle.md#how-to-read-it"


def length_findings(evidence: Evidence, lengths: Mapping[int, Estimate], threshold: float) -> list[Finding]:
    """For each length: does the share found fall below the threshold? And the length from which on it does."""
    several = len(lengths) > 1
    names = {n: f"needle.accuracy.L{n:06d}" if several else "needle.accuracy" for n in lengths}
    found = [_fails(f"needle.length.{n}", _at(n), estimate, threshold, names[n]) for n, estimate in lengths.items()]
    return [*found, *_cliff(found, lengths, threshold)] if several else found


def cell_findings(evidence: Evidence, length: int, depth: float, threshold: float) -> list[Finding]:
    """One cell: does the share found at this length and depth fall below the threshold? Exploratory: cells are many."""
    place = f"{_at(length)}, {depth:g} % into the text"
    effect = evidence.metrics["needle.accuracy"]
    return [_fails(f"needle.cell.{length}.{depth:g}", place, effect, threshold, "needle.accuracy", headline=False)]


def _at(length: int) -> str:
    return f"in prompts of {length:,} tokens"


def _fails(key: str, place: str, effect: Estimate, threshold: float, metric: str, *, headline: bool = True) -> Finding:
    share = "" if effect.value is None else f"{100 * effect.value:.3g} of 100 needles are found"
    return claim(
        key,
        effect,
        found=f"The model fails to find needles {place}",
        absent=f"The model finds needles {place}",
        unknown=f"Whether the model finds needles {place} cannot be told",
        null=threshold,
        margin=0.0,
        side="below",
        metric=metric,
        headline=headline,
        size=f"{share}, {100 * threshold:.3g} are asked for",
        counted="prompts",
        look="the depths of the heatmap at this length, and the answers that missed (items)",
        page=_PAGE,
    )


def _cliff(fails: list[Finding], lengths: Mapping[int, Estimate], threshold: float) -> list[Finding]:
    """Exploratory: it says of the lengths together what each of them has said, and takes nothing from them."""
    ordered = sorted(zip(lengths, fails, strict=True), key=lambda pair: pair[0])
    good: list[int] = []
    for length, finding in ordered:
        if finding.verdict == "not found":
            good.append(length)
            continue
        until = f"Needles are found up to {good[-1]:,} tokens" if good else ""
        return [
            claim(
                "needle.cliff",
                finding.effect,
                found=f"{until} and no longer at {length:,}"
                if good
                else f"Needles are not found even at {length:,} tokens, the shortest that was measured",
                absent=f"{until} and at {length:,}",
                unknown=f"{until}; whether at {length:,} cannot be told"
                if good
                else f"The length up to which needles are found is not estimable: at {length:,} tokens, the shortest, "
                "it cannot be told whether they are",
                null=threshold,
                margin=0.0,
                side="below",
                metric=finding.metric,
                headline=False,
                size=f"the cliff lies at {good[-1]:,} tokens" if good else "no length was shown to be read",
                counted="prompts of this length",
                look="the lengths between, and whether the model was trained to read so much",
                page=_PAGE,
            )
        ]
    longest, last = ordered[-1]
    return [
        claim(
            "needle.cliff",
            last.effect,
            found=f"Needles are not found at {longest:,} tokens",
            absent=f"Needles are found up to {longest:,} tokens, the longest that was measured",
            unknown=f"Whether needles are found at {longest:,} tokens cannot be told",
            null=threshold,
            margin=0.0,
            side="below",
            metric=last.metric,
            headline=False,
            size=f"the cliff lies beyond {longest:,} tokens",
            counted="prompts of this length",
            look="longer prompts",
            page=_PAGE,
        )
    ]
