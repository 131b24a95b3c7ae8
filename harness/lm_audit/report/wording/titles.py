"""What a metric is called and what it means, from the table that its audit declares; else its own name in words."""

from __future__ import annotations

from lm_audit.audits.metric_info import metric_info
from lm_audit.report.wording.names import metric_label, visible
from lm_audit.stats.estimate import Estimate

DIRECTIONS = {"higher": "higher is better", "lower": "lower is better"}


def metric_title(name: str, audit: str | None) -> str:
    """The readable title of a metric."""
    info = metric_info(name)
    return visible(info.title if info else metric_label(name, audit))


def metric_hint(name: str, audit: str | None, estimate: Estimate) -> str:
    """Title, unit, direction and explanation in one text, for hover and keyboard focus; the full name stands last."""
    title = metric_title(name, audit)
    info = metric_info(name)
    shown = metric_unit(name, estimate)
    unit = f" ({shown})" if shown else ""
    about = visible(info.about) if info else ""
    return "\n".join(line for line in (f"{title}{unit}", direction(estimate), about, visible(name)) if line)


def metric_unit(name: str | None, estimate: Estimate) -> str:
    """The unit of the estimate, else the one that its audit's table declares; empty where neither says one."""
    info = metric_info(name) if name and not estimate.unit else None
    return visible(estimate.unit or (info.unit if info else ""))


def direction(estimate: Estimate) -> str:
    """``lower is better``, ``best near 50``, empty where no direction is better."""
    better = estimate.better or ""
    if better.startswith("target:"):
        return f"best near {better.partition(':')[2]}"
    return DIRECTIONS.get(better, "")
