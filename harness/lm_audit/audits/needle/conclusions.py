"""What the needle audit concludes: where needles are no longer found."""

from __future__ import annotations

from collections.abc import Mapping

from lm_audit.evidence import Evidence
from lm_audit.findings import Finding, claim, of_hundred
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
    asked = of_hundred(threshold)
    share = "" if effect.value is None else f"{of_hundred(effect.value)} of 100 needles are found"
    return claim(
        key,
        effect,
        found=f"The model finds fewer than {asked} of 100 needles {place}",
        absent=f"The model finds at least {asked} of 100 needles {place}",
        unknown=f"Whether the model finds {asked} of 100 needles {place} cannot be told",
        null=threshold,
        margin=0.0,
        side="below",
        metric=metric,
        headline=headline,
        size=f"{share}, {asked} are asked for",
        counted="prompts",
        look="the depths of the heatmap at this length, and the answers that missed (items)",
        page=_PAGE,
    )


def _cliff(fails: list[Finding], lengths: Mapping[int, Estimate], threshold: float) -> list[Finding]:
    """Exploratory: it says of the lengths together what each of them has said, and takes nothing from them.

    It rests on the shortest length that fails; without one on the shortest that cannot be told, else on the longest.
    """
    ordered = sorted(zip(lengths, fails, strict=True), key=lambda pair: pair[0])
    verdicts = [finding.verdict for _, finding in ordered]
    named = next((word for word in ("found", "cannot tell") if word in verdicts), None)
    place = verdicts.index(named) if named else len(verdicts) - 1
    length, finding = ordered[place]
    before = [(n, one.verdict) for n, one in ordered[: place + (named is None)]]
    good = max((n for n, verdict in before if verdict == "not found"), default=None)
    unsure = [n for n, verdict in before if verdict == "cannot tell"]
    again = [n for n, one in ordered[place + 1 :] if one.verdict == "not found"] if named == "found" else []
    asked = f"{of_hundred(threshold)} of 100 needles"
    until = "" if good is None else f"At least {asked} are found {_reaching(good, unsure)} {good:,} tokens"
    return [
        claim(
            "needle.cliff",
            finding.effect,
            found=_no_longer(until, asked, length, unsure, shortest=place == 0) + _again(again, asked),
            absent=f"{until}, the longest that was measured"
            if until
            else f"At least {asked} are found at {length:,} tokens",
            unknown=f"{until}; whether at {length:,} cannot be told"
            if until
            else f"The length up to which {asked} are found is not estimable: at {length:,} tokens"
            f"{', the shortest,' if place == 0 else ''} it cannot be told whether they are",
            null=threshold,
            margin=0.0,
            side="below",
            metric=finding.metric,
            headline=False,
            size="" if again else _cliff_size(good, length, unsure, fails=named == "found", all_good=named is None),
            p=_of_all(finding.p, len(lengths)),
            counted="prompts of this length",
            look="longer prompts"
            if named is None
            else "the lengths between, and whether the model was trained to read so much",
            page=_PAGE,
        )
    ]


def _of_all(p: float | None, lengths: int) -> float | None:
    """No surer than its length is among all of them: it was chosen for what it shows."""
    return None if p is None else min(1.0, p * lengths)


def _reaching(good: int, unsure: list[int]) -> str:
    """*Up to* a length says of all shorter ones that they are read."""
    return "at" if any(n < good for n in unsure) else "up to"


def _no_longer(until: str, asked: str, length: int, unsure: list[int], *, shortest: bool) -> str:
    """The sentence for a length that fails: up to where needles are found, and where between that is not known."""
    if until:
        told = f"{until} and no longer at {length:,}"
    else:
        told = f"Fewer than {asked} are found{' even' if shortest else ''} at {length:,} tokens"
        told += ", the shortest that was measured" if shortest else ""
    return told + (f"; whether at {' and '.join(f'{n:,}' for n in unsure)} cannot be told" if unsure else "")


def _again(lengths: list[int], asked: str) -> str:
    """Longer prompts in which they are found: then there is no length from which on they are not."""
    return f"; at {' and '.join(f'{n:,}' for n in lengths)} at least {asked} are" if lengths else ""


def _cliff_size(good: int | None, length: int, unsure: list[int], *, fails: bool, all_good: bool) -> str:
    if all_good:
        return f"the cliff lies beyond {length:,} tokens"
    if good is None:
        return f"the cliff lies below {length:,} tokens" if fails else "no length was shown to be read"
    if not fails:
        return f"the cliff lies at {good:,} tokens or beyond"
    if any(n < good for n in unsure):
        return f"the cliff lies below {length:,} tokens"
    return f"the cliff lies between {good:,} and {length:,} tokens"
