"""MetricInfo: what a reader must know of a metric: its title, its unit, which way is better, and what it is.

An audit declares them in ``lm_audit/audits/<audit>/metric_table.py``::

    METRICS = (
        MetricInfo("needle.accuracy", "Needles found", "share", "higher", "Share of prompts whose answer holds ..."),
        MetricInfo("privacy.exposure.r{times}", "Exposure of canaries seen {times} times", "bits", "lower", "..."),
    )

The table is the one place that knows the direction of a metric: :meth:`lm_audit.evidence.Evidence.metric` and the
recorder fill it in. Found by looking, like an audit's options; plugin and report know none of the audits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from lm_audit.audits.registry import audit_packages
from lm_audit.stats.estimate import Estimate

_PLACE = re.compile(r"\{(\w+)\}")

Range = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
AT_LEAST_0: Range = (0.0, math.inf)
AT_MOST_0: Range = (-math.inf, 0.0)
SHARE: Range = (0.0, 1.0)
SIGNED: Range = (-1.0, 1.0)

RANGE_OF_UNIT: Mapping[str, Range] = {
    "%": (0.0, 100.0),
    "percentage points": (-100.0, 100.0),
    **dict.fromkeys(("share", "share of options", "share of items", "share of other orders", "share of places"), SHARE),
    **dict.fromkeys(("p", "AUC", "AP"), SHARE),
    **dict.fromkeys(("-1..1", "Pearson r"), SIGNED),
    **dict.fromkeys(("tokens", "pairs", "benchmarks", "bits", "epsilon", "d"), AT_LEAST_0),
    "perplexity": (1.0, math.inf),
    **dict.fromkeys(("nats", "nats a byte", "nats a pair"), ANY),
}
"""What a value in this unit can be where a metric declares no range of its own: a difference of shares does."""


@dataclass(frozen=True)
class MetricInfo:
    """One metric or a family of them.

    ``name`` is the metric's dotted name; ``{word}`` in it stands for one part of a family's names
    (``privacy.exposure.r{times}``), the last one in a name for all that is left, and is filled into ``title`` and
    ``about``. ``better`` is as in :class:`~lm_audit.stats.estimate.Estimate`: ``"higher"``, ``"lower"``,
    ``"target:X"``, or ``None`` where no direction is better. ``unit`` is empty where there is none, or where it differs
    within the family: the estimate has its own. ``about`` is one sentence. ``range`` is the least and the largest value
    that the metric can have, where its unit alone does not tell (``RANGE_OF_UNIT``).
    """

    name: str
    title: str
    unit: str
    better: str | None
    about: str
    range: Range | None = None

    @property
    def limits(self) -> Range:
        """The least and the largest value that the metric can have, infinite where it has no bound."""
        return RANGE_OF_UNIT.get(self.unit, ANY) if self.range is None else self.range

    def filled(self, metric: str) -> MetricInfo | None:
        """This entry for one metric of the family, ``None`` where the metric is not of it."""
        found = _pattern(self.name).fullmatch(metric)
        if found is None:
            return None
        words = {name: text.replace("_", " ") for name, text in found.groupdict().items()}
        return replace(self, name=metric, title=_fill(self.title, words), about=_fill(self.about, words))


@cache
def _pattern(name: str) -> re.Pattern[str]:
    places = _PLACE.split(name)
    last = len(places) - 2
    parts = [
        re.escape(text) if at % 2 == 0 else f"(?P<{text}>{'.+' if at == last else '[^.]+'})"
        for at, text in enumerate(places)
    ]
    return re.compile("".join(parts))


def _fill(text: str, words: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: words.get(place[1], place[0]), text)


@cache
def metric_table(audit: str) -> tuple[MetricInfo, ...]:
    """The table of an audit, empty where there is none."""
    package = audit_packages().get(audit)
    if package is None or find_spec(f"{package}.metric_table") is None:
        return ()
    return tuple(import_module(f"{package}.metric_table").METRICS)


def declared_names(audit: str) -> tuple[str, ...]:
    """The names in the table of an audit, families with their ``{word}``."""
    return tuple(entry.name for entry in metric_table(audit))


@cache
def metric_info(metric: str) -> MetricInfo | None:
    """What is declared of a metric: of several families that it is of, the one that spells most of the name out."""
    nearest = _nearest(metric)
    return None if nearest is None else nearest.filled(metric)


def metric_family(metric: str) -> str | None:
    """The name under which a metric is declared, with the ``{word}`` of its family; ``None`` of one that is not."""
    nearest = _nearest(metric)
    return None if nearest is None else nearest.name


def _nearest(metric: str) -> MetricInfo | None:
    table = metric_table(metric.partition(".")[0])
    fitting = [entry for entry in table if _pattern(entry.name).fullmatch(metric)]
    return max(fitting, key=lambda entry: len(_PLACE.sub("", entry.name)), default=None)


def range_text(limits: Range) -> str:
    """``0 to 1``, ``at least 0``, ``at most 0``, empty where there is no bound."""
    low, high = limits
    if math.isinf(low):
        return "" if math.isinf(high) else f"at most {high:g}"
    return f"at least {low:g}" if math.isinf(high) else f"{low:g} to {high:g}"


def with_direction(metric: str, estimate: Estimate) -> Estimate:
    """The estimate with the direction that its audit's table declares; as it is where the table declares none."""
    info = metric_info(metric)
    if info is None or info.better is None or info.better == estimate.better:
        return estimate
    return replace(estimate, better=info.better)
