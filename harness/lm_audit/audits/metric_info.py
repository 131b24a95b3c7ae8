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

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from lm_audit.audits.registry import audit_packages
from lm_audit.stats.estimate import Estimate


@dataclass(frozen=True)
class MetricInfo:
    """One metric or a family of them.

    ``name`` is the metric's dotted name; ``{word}`` in it stands for one part of a family's names
    (``privacy.exposure.r{times}``), the last one in a name for all that is left, and is filled into ``title`` and
    ``about``. ``better`` is as in :class:`~lm_audit.stats.estimate.Estimate`: ``"higher"``, ``"lower"``,
    ``"target:X"``, or ``None`` where no
    direction is better. ``about`` is one sentence.
    """

    name: str
    title: str
    unit: str
    better: str | None
    about: str

    def filled(self, metric: str) -> MetricInfo | None:
        """This entry for one metric of the family, ``None`` where the metric is not of it."""
        found = _pattern(self.name).fullmatch(metric)
        if found is None:
            return None
        words = {name: text.replace("_", " ") for name, text in found.groupdict().items()}
        return replace(self, name=metric, title=_fill(self.title, words), about=_fill(self.about, words))


@cache
def _pattern(name: str) -> re.Pattern[str]:
    places = re.split(r"\{(\w+)\}", name)
    last = len(places) - 2
    parts = [
        re.escape(text) if at % 2 == 0 else f"(?P<{text}>{'.+' if at == last else '[^.]+'})"
        for at, text in enumerate(places)
    ]
    return re.compile("".join(parts))


def _fill(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda place: words.get(place[1], place[0]), text)


@cache
def metric_tables() -> Mapping[str, tuple[MetricInfo, ...]]:
    """The tables of all audits that have one, by name of audit."""
    found = {}
    for audit, package in audit_packages().items():
        if find_spec(f"{package}.metric_table") is not None:
            found[audit] = tuple(import_module(f"{package}.metric_table").METRICS)
    return found


@cache
def metric_info(metric: str) -> MetricInfo | None:
    """What is declared of a metric: the entry of its very name before the first family that it is of."""
    table = metric_tables().get(metric.partition(".")[0], ())
    exact = next((info for info in table if info.name == metric), None)
    return exact or next((info for entry in table if (info := entry.filled(metric)) is not None), None)


def with_direction(metric: str, estimate: Estimate) -> Estimate:
    """The estimate with the direction that its audit's table declares; as it is where the table says nothing of it."""
    info = metric_info(metric)
    return estimate if info is None else replace(estimate, better=info.better)
