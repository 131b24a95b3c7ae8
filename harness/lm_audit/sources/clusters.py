"""What may be resampled: numbers of the independent clusters that units belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_audit.sources.record import MetricSource
from lm_audit.sources.units import Floats, Integers, Mask, Units

SIDES = (("members", "controls"), ("first", "second"))
"""Options that split units into two groups, which are independent samples where no cluster holds both."""


@dataclass(frozen=True)
class Clustering:
    """One way to cut units into independent clusters: of each unit its cluster, of each cluster its stratum."""

    codes: Integers
    strata: Integers

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return len(self.strata)

    def spread(self, weights: Floats) -> Floats:
        """Weights of clusters (B, clusters) as weights of units (B, n)."""
        return weights[:, self.codes]


def clusterings(source: MetricSource, units: Units) -> tuple[Clustering, ...]:
    """One clustering, or for two crossed factors three: rows, columns, and cells.

    A factor with a single value is no clustering: what is found then holds for that value only.
    """
    labels = [list(map(str, units.column(name))) for name in source.clusters]
    labels = [label for label in labels if len(set(label)) > 1] if len(labels) > 1 else labels
    if not labels:
        codes = np.arange(len(units))
        return (Clustering(codes, _strata(codes, source.options, units)),)
    found = [_numbered(label) for label in labels]
    if len(found) == 2:
        found.append(_numbered(list(zip(*labels, strict=True))))
    return tuple(Clustering(codes, _strata(codes, source.options, units)) for codes in found)


def sides_of(source: MetricSource, units: Units, clustering: Clustering) -> list[Mask]:
    """Which clusters are in each of the groups that the statistic compares; none where a cluster is in two of them.

    None either where there is one group only, or a group of a single cluster, whose spread nobody knows.
    """
    of_cluster = clustering.strata
    if source.statistic == "max_min":
        groups = _numbered(list(map(str, units.column(source.options["group"]))))
        of_cluster = np.zeros(clustering.count, dtype=np.int64)
        of_cluster[clustering.codes] = groups
        if (of_cluster[clustering.codes] != groups).any():
            return []
    found = [of_cluster == side for side in np.unique(of_cluster)]
    return found if len(found) > 1 and min(int(side.sum()) for side in found) > 1 else []


def _numbered(labels: list[Any]) -> Integers:
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def _strata(codes: Integers, options: Mapping[str, Any], units: Units) -> Integers:
    count = int(codes.max()) + 1 if len(codes) else 0
    for first, second in SIDES:
        if first in options and second in options:
            side = units.mask(options[second]).astype(np.int64)
            share = np.bincount(codes, weights=side, minlength=count) / np.maximum(np.bincount(codes), 1)
            # A cluster with units of both groups ties them together: then there is one sample.
            return share.astype(np.int64) if np.isin(share, (0.0, 1.0)).all() else np.zeros(count, dtype=np.int64)
    return np.zeros(count, dtype=np.int64)
