"""Which metrics the controls hold by another route, and how: value, interval, chance level.

    python benchmarks/controls/held.py [--audit bias ...]     # a row a metric that the audits declare
    python benchmarks/controls/held.py --list > tests/audits/held_metrics.txt     # after a hold was added

Every control runs once, and what it shows to ``audits/second_opinion.py`` is noted. A metric of which several names are
of one family (``{stage}``, ``{category}``) stands under the family's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

import real

from lm_audit.audits import second_opinion
from lm_audit.audits.bias.benchmarks import public_controls
from lm_audit.audits.metric_info import declared_names, metric_family
from lm_audit.sources.opinion.reach import reach_of
from lm_audit.sources.statistics import STATISTICS

PARTS = ("value", "interval", "chance")
AUDITS = tuple(sorted(real.AUDITS))
Held = dict[str, dict[str, set[str]]]
"""By family of metrics: value, interval or chance, each with the controls that hold it."""


@contextmanager
def noting(seen: set[tuple[str, str]]) -> Iterator[None]:
    """Note in ``seen`` which parts of which metrics are looked at."""

    def note(metric: str, part: str) -> None:
        seen.add((metric_family(metric) or metric, part))

    def of_value(name: str, estimate: Any, source: Any, table: Any) -> None:
        if not source.seeded and source.statistic in STATISTICS:
            note(name, "value")

    def of_reach(name: str, estimate: Any, source: Any, table: Any, limits: Any) -> None:
        if estimate.low is not None and reach_of(estimate, source, table, limits) is not None:
            note(name, "interval")

    def of_chance(name: str, estimate: Any, known: Any, *, demanded: bool) -> None:
        if estimate.chance is not None and known is not None:
            note(name, "chance")

    def of_formulas(metrics: Any, values: Any) -> None:
        for name in values:
            note(name, "value")

    def of_findings(findings: Any, evidence: Any, name: str, known: float) -> None:
        note(name, "value")

    watched: dict[str, Callable[..., None]] = {
        "_wrong_value": of_value,
        "_wrong_reach": of_reach,
        "_wrong_chance": of_chance,
        "_unlike": of_formulas,
    }
    places: list[tuple[Any, str, Callable[..., None]]] = [
        *((second_opinion, name, watch) for name, watch in watched.items()),
        (public_controls._Findings, "metric", of_findings),
    ]
    honest = [getattr(where, name) for where, name, _ in places]
    try:
        for (where, name, watch), own in zip(places, honest, strict=True):
            setattr(where, name, _both(watch, own))
        yield
    finally:
        for (where, name, _), own in zip(places, honest, strict=True):
            setattr(where, name, own)


def _both(watch: Callable[..., None], own: Callable[..., Any]) -> Callable[..., Any]:
    def watched(*words: Any, **options: Any) -> Any:
        watch(*words, **options)
        return own(*words, **options)

    return watched


def held_by_controls(audits: Sequence[str] = AUDITS) -> Held:
    """What every control of these audits holds."""
    found: Held = {}
    for audit in audits:
        seen = set[tuple[str, str]]()
        with noting(seen):
            for control, _ in real.AUDITS[audit](0, "tiny"):
                for metric, part in seen:
                    found.setdefault(metric, {}).setdefault(part, set()).add(control)
                seen.clear()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audit", choices=AUDITS, nargs="*", default=list(AUDITS))
    parser.add_argument("--list", action="store_true", help="the lines of tests/audits/held_metrics.txt instead")
    options = parser.parse_args()
    held = held_by_controls(tuple(options.audit))
    for audit in options.audit:
        for name in declared_names(audit):
            parts = held.get(name, {})
            if options.list:
                if parts:
                    print(f"{name}: {' '.join(part for part in PARTS if part in parts)}")
                continue
            told = "; ".join(f"{part}: {', '.join(sorted(parts[part]))}" for part in sorted(parts))
            print(f"| {name} | {told or 'none'} |")


if __name__ == "__main__":
    main()
