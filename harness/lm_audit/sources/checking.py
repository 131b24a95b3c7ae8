"""What every audit's tests ask of its evidence: do the rows give the metrics?"""

from __future__ import annotations

from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.sources.recomputing import recompute
from lm_audit.sources.units import RowTable


def unreproduced(evidence: Evidence, *, relative: float = 1e-9) -> list[str]:
    """What is wrong with the sources of ``evidence``: one line for each metric that its rows do not give.

    A metric without a value must come out without one. Sources that say ``seeded`` need only be computable.
    """
    table = RowTable(evidence.rows)
    problems = []
    for name, source in evidence.sources.items():
        value = evidence.metrics[name].value
        try:
            found = recompute(source, table)
        except (DataError, KeyError) as error:
            problems.append(f"{name}: {error}")
            continue
        if source.seeded or value is None:
            # Why a value is withheld (too few items) is the metric's own affair.
            continue
        if found is None or abs(found - value) > relative * max(abs(value), abs(found), 1e-3):
            problems.append(f"{name}: recorded {value!r}, its rows give {found!r}")
    return problems


def undirected(evidence: Evidence) -> list[str]:
    """Metrics that do not say which way they get worse, nor that they get worse neither way; p-values need not."""
    return [name for name, metric in evidence.metrics.items() if metric.better is None and metric.unit != "p"]


def unsourced(evidence: Evidence) -> list[str]:
    """Metrics that name no source; p-values need none."""
    return [name for name, metric in evidence.metrics.items() if name not in evidence.sources and metric.unit != "p"]
