"""What chance alone gives, from a metric's source and its rows: by other formulas than those that report it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from lm_audit.sources.evaluation import gathered
from lm_audit.sources.record import MetricSource
from lm_audit.sources.statistics import STATISTICS
from lm_audit.sources.units import RowTable


def chance_level(source: MetricSource, table: RowTable) -> float | None:
    """What the metric is where its groups are alike; ``None`` for a level whose chance is a matter of the items."""
    if source.statistic not in STATISTICS or source.transform is not None:
        return None
    options = source.options
    if source.statistic == "auc":
        return _told(source, 0.5)
    if source.statistic == "average_precision":
        units = gathered(source, table)
        members, twins = (int(units.mask(options[side]).sum()) for side in ("members", "controls"))
        return _told(source, precision_by_chance(members, members + twins)) if members and twins else None
    if source.statistic == "tpr_at_fpr":
        return _told(source, float(Fraction(str(options["fpr"]))))
    if source.statistic == "exposure":
        return _told(source, _even_rank_bits(int(gathered(source, table).mask(options["controls"]).sum())))
    if source.statistic in ("difference", "correlation"):
        return _told(source, 0.0)
    compares = len(source.terms) > 1 and math.isclose(sum(term.weight for term in source.terms), 0.0, abs_tol=1e-9)
    return _told(source, 0.0) if source.statistic == "mean" and compares else None


def _told(source: MetricSource, value: float) -> float:
    return source.offset + source.scale * value


def precision_by_chance(members: int, total: int) -> float:
    """The mean over all orders: of each place the chance that a member stands there, times the precision that it has
    by then."""
    places = np.arange(1, total + 1)
    others = (places - 1) * (members - 1) / max(1, total - 1)
    return float(((1 + others) / places).sum() / total)


def _even_rank_bits(others: int) -> float:
    """The mean over all ranks that one among so many others can have."""
    return math.fsum(math.log2((others + 1) / rank) for rank in range(1, others + 2)) / (others + 1)
