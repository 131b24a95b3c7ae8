"""The second opinion's own numbers: chance by going through all orders, and reaches pinned for rows of every kind.

How well the reaches agree with those of the reported intervals is told by ``benchmarks/controls/reporting.py``.
"""

from __future__ import annotations

from itertools import permutations
from math import inf, log
from typing import Any

import numpy as np
import pytest

from lm_audit.sources import MetricSource
from lm_audit.sources.opinion.chance_levels import chance_level, precision_by_chance
from lm_audit.sources.opinion.reach import reach_of, reported_reach
from lm_audit.sources.units import RowTable
from lm_audit.stats import Estimate

Rows = list[dict[str, Any]]
SIDES: dict[str, Any] = {"members": {"role": "m"}, "controls": {"role": "c"}}


@pytest.mark.parametrize(("members", "total"), [(1, 1), (1, 4), (2, 5), (3, 6), (4, 4)])
def test_average_precision_by_chance_is_its_mean_over_all_orders(members: int, total: int) -> None:
    found = []
    for order in permutations(range(total)):
        places = sorted(order.index(member) + 1 for member in range(members))
        found.append(np.mean([(k + 1) / place for k, place in enumerate(places)]))
    assert precision_by_chance(members, total) == pytest.approx(float(np.mean(found)))


def test_exposure_by_chance_is_the_mean_over_the_ranks_that_so_many_others_leave() -> None:
    source = MetricSource("exposure", "v", options=SIDES)
    assert chance_level(source, RowTable(sided([1.0], [0.0]))) == pytest.approx(0.5)
    assert chance_level(source, RowTable(sided([1.0], [0.0] * 3))) == pytest.approx((2 + 1 + log(4 / 3) / log(2)) / 4)
    assert chance_level(source, RowTable(sided([1.0], range(5000)))) == pytest.approx(1 / log(2), abs=2e-3)


def items(values: Any, **columns: Any) -> Rows:
    return [
        {"item": f"i{k}", "v": float(v), **{name: str(column[k]) for name, column in columns.items()}}
        for k, v in enumerate(values)
    ]


def sided(members: Any, twins: Any) -> Rows:
    """Members, of which every third is of the first tier, then twins."""
    roles, tiers = ["m"] * len(members) + ["c"] * len(twins), [k % 3 for k in range(len(members) + len(twins))]
    return items([*members, *twins], role=roles, tier=tiers)


def reach(source: MetricSource, rows: Rows, method: str = "", limits: tuple[float, float] = (-inf, inf)) -> Any:
    found = reach_of(Estimate(0.5, method=method), source, RowTable(rows), limits)
    return None if found is None else (found.least, found.most)


def drawn(seed: int, *size: int) -> Any:
    return np.random.default_rng(seed).normal(size=size)


def groups(*parts: Any) -> tuple[MetricSource, Rows]:
    names = [name for name, part in zip("abcd", parts, strict=False) for _ in part]
    options = {"first": {"g": "a"}, "second": {"g": "b"}}
    return MetricSource("difference", "v", options=options), items(np.concatenate(parts), g=names)


def ranked(statistic: str, **options: Any) -> MetricSource:
    return MetricSource(statistic, "v", options=SIDES | options)


SCORES = drawn(1, 50) + 1.8, drawn(2, 200)
TIED = np.round(SCORES[0] * 2) / 2, np.round(SCORES[1] * 2) / 2
SHARE = "Clopper-Pearson"
HITS = (drawn(5, 36) > 0.3).astype(float)
CLUSTERS = np.array([k // 3 for k in range(30)] + [10, 10, 11, 11, 11, 11])
THREE = np.array([k % 3 for k in range(36)])
WIDEST = MetricSource("max_min", "v", options={"group": "g"}, clusters=("c",))
WITHIN = "mean, t, conditional on these files"

KINDS: dict[str, tuple[MetricSource, Rows, str, tuple[float, float]]] = {
    **{
        f"difference of {len(a)} and {len(b)}": (*groups(a, b), "bootstrap-t", (-inf, inf))
        for a, b in (
            (drawn(3, 12), 2 * drawn(4, 8) + 1),
            (np.exp(drawn(3, 9)), drawn(4, 30)),
            (drawn(3, 30), np.exp(drawn(4, 10))),
            (drawn(3, 2), drawn(4, 2)),
            (drawn(3, 3), drawn(4, 40)),
        )
    },
    **{
        f"{name} at {fpr} of {side}": (ranked("tpr_at_fpr", fpr=fpr), sided(*scores), "", (0.0, 1.0))
        for name, scores in (("tpr", SCORES), ("tied tpr", TIED))
        for fpr, side in (("0.05", 200), ("0.01", 200), ("0.02", 200), ("0.001", 200))
    },
    "tpr of few": (ranked("tpr_at_fpr", fpr="0.1"), sided(SCORES[0][:12], SCORES[1][:12]), "", (0.0, 1.0)),
    "tpr of very few": (ranked("tpr_at_fpr", fpr="0.5"), sided(SCORES[0][:9], SCORES[1][:3]), "", (0.0, 1.0)),
    "average precision": (ranked("average_precision"), sided(*SCORES), "", (0.0, 1.0)),
    "average precision of few": (ranked("average_precision"), sided(SCORES[0][:8], SCORES[1][:20]), "", (0.0, 1.0)),
    "average precision by chance": (ranked("average_precision"), sided(drawn(8, 15), drawn(9, 60)), "", (0.0, 1.0)),
    "auc": (ranked("auc"), sided(*SCORES), "", (0.0, 1.0)),
    "auc of few": (ranked("auc"), sided(SCORES[0][:8], SCORES[1][:5]), "", (0.0, 1.0)),
    "exposure": (ranked("exposure"), sided(*SCORES), "", (0.0, inf)),
    "exposure of a tier": (ranked("exposure", tier={"tier": "0"}), sided(*SCORES), "", (0.0, inf)),
    "exposure of ties": (ranked("exposure"), sided(*TIED), "", (0.0, inf)),
    "exposure of two and two": (ranked("exposure"), sided([0.1, 0.6], [0.0, 0.5]), "", (0.0, inf)),
    "share": (MetricSource.mean("v"), items(HITS), SHARE, (0.0, 1.0)),
    "share of clusters": (MetricSource.mean("v", clusters=("c",)), items(HITS, c=CLUSTERS), SHARE, (0.0, 1.0)),
    "share of few clusters": (
        MetricSource.mean("v", clusters=("c",)), items(HITS[:12], c=CLUSTERS[:12]), SHARE, (0.0, 1.0),
    ),
    "widest of three": (WIDEST, items(HITS, c=CLUSTERS, g=THREE), SHARE, (0.0, 1.0)),
    "widest of two": (WIDEST, items(HITS, c=CLUSTERS, g=THREE > 0), SHARE, (0.0, 1.0)),
    "widest of three apart": (
        WIDEST, items(np.where(THREE == 2, 1.0, HITS * (THREE == 1)), c=CLUSTERS, g=THREE), SHARE, (0.0, 1.0),
    ),
    "difference of shares": (
        MetricSource("difference", "v", options={"first": {"g": "0"}, "second": {"g": "1"}}, clusters=("c",)),
        items(HITS, c=CLUSTERS, g=THREE), SHARE, (-1.0, 1.0),
    ),
    "within three files": (
        MetricSource.mean("v"), items(drawn(6, 30) + THREE[:30], file=THREE[:30]), WITHIN, (-inf, inf),
    ),
    "within two files of few": (
        MetricSource.mean("v"), items(drawn(6, 9) + THREE[:9], file=THREE[:9] > 0), WITHIN, (-inf, inf),
    ),
    "within two files of fewer": (
        MetricSource.mean("v"), items(drawn(6, 8) + THREE[:8], file=THREE[:8] > 0), WITHIN, (-inf, inf),
    ),
    "within one file": (MetricSource.mean("v"), items(drawn(6, 30), file=["f"] * 30), WITHIN, (-inf, inf)),
    "skewed": (MetricSource.mean("v"), items(np.exp(drawn(7, 12))), "bootstrap-t", (-inf, inf)),
    "skewed to the other side": (MetricSource.mean("v"), items(-np.exp(drawn(7, 12))), "bootstrap-t", (-inf, inf)),
    "symmetric": (MetricSource.mean("v"), items(np.exp(drawn(7, 12))), "bootstrap-t, symmetric", (-inf, inf)),
    "resamples of one value": (MetricSource.mean("v"), items([0.0, 0.0, 1.0]), "bootstrap-t", (-inf, inf)),
    "symmetric resamples of one value": (
        MetricSource.mean("v"), items([0.0] * 7 + [1.0, 3.0]), "bootstrap-t, symmetric", (-inf, inf),
    ),
    "bootstrap of clusters": (
        MetricSource.mean("v", clusters=("c",)), items(drawn(7, 36), c=CLUSTERS), "bootstrap-t", (-inf, inf),
    ),
    "t of clusters": (
        MetricSource.mean("v", clusters=("c",)), items(np.exp(drawn(7, 36)), c=CLUSTERS), "mean, t", (-inf, inf),
    ),
    "t of rows and columns": (
        MetricSource.mean("v", clusters=("c", "g")), items(drawn(7, 36), c=CLUSTERS, g=THREE), "mean, t", (-inf, inf),
    ),
    "t of two values": (MetricSource.mean("v"), items([0.0, 1.0, 1.0, 1.0]), "mean, t", (-inf, inf)),
    "wider for other files": (
        MetricSource.mean("v", clusters=("c",)), items(drawn(7, 36), c=CLUSTERS), "mean, t, where wider", (-inf, inf),
    ),
    "bounded of clusters": (
        MetricSource.mean("v", clusters=("c",)), items(HITS * 0.7, c=CLUSTERS), "Gaffke", (0.0, 1.0),
    ),
    "average precision at its best": (
        ranked("average_precision"), sided(SCORES[0][:5] + 9, SCORES[1][:9]), "", (0.0, 1.0),
    ),
    "average precision at its worst": (
        ranked("average_precision"), sided(SCORES[0][:5] - 9, SCORES[1][:90]), "", (0.0, 1.0),
    ),
    "average precision of three": (ranked("average_precision"), sided([3.0, 2.0, -1.0], drawn(2, 30)), "", (0.0, 1.0)),
    "auc of one": (ranked("auc"), sided([0.5], SCORES[1][:9]), "", (0.0, 1.0)),
    "difference of three and three": (*groups([0.0, 0.0, 1.0], [2.0, 2.0, 2.5]), "bootstrap-t", (-inf, inf)),
    "difference of two and 40": (*groups(drawn(3, 2), drawn(4, 40)), "bootstrap-t", (-inf, inf)),
    "difference of one value": (*groups([1.0] * 8, [1.0] * 9), "bootstrap-t", (-inf, inf)),
    "bounded": (MetricSource.mean("v"), items(HITS[:20] * 0.7), "Gaffke", (0.0, 1.0)),
    "bounded on one side": (MetricSource.mean("v"), items(HITS[:20]), "Gaffke", (0.0, inf)),
}  # fmt: skip

PINNED: dict[str, tuple[float, float] | None] = {
    "difference of 12 and 8": (1.99458262, 2.3769962),
    "difference of 9 and 30": (18.5215985, 20.6589264),
    "difference of 30 and 10": (5.66616332, 6.30072019),
    "difference of 2 and 2": None,
    "difference of 3 and 40": (50.470268, 63.3109555),
    "tpr at 0.05 of 200": (0.216567038, 0.216567038),
    "tpr at 0.01 of 200": (0.31664544, 0.31664544),
    "tpr at 0.02 of 200": (0.290794773, 0.290794773),
    "tpr at 0.001 of 200": (0.131126307, 0.131126307),
    "tied tpr at 0.05 of 200": (0.393699416, 0.393699416),
    "tied tpr at 0.01 of 200": (0.255118567, 0.255118567),
    "tied tpr at 0.02 of 200": (0.237772036, 0.237772036),
    "tied tpr at 0.001 of 200": (0.112342784, 0.112342784),
    "tpr of few": (0.916666667, 0.916666667),
    "tpr of very few": (0.35689635, 0.35689635),
    "average precision": (0.15148095, 0.15148095),
    "average precision of few": (0.323656031, 0.323656031),
    "average precision by chance": (0.200315495, 0.200315495),
    "auc": (0.0669945029, 0.0669945029),
    "auc of few": (0.359357939, 0.359357939),
    "exposure": (0.981512592, 0.981512592),
    "exposure of a tier": (1.44246584, 1.44246584),
    "exposure of ties": (0.857693005, 0.857693005),
    "exposure of two and two": (1.0849625, 1.0849625),
    "share": (0.169295427, 0.169295427),
    "share of clusters": (0.231487144, 0.231487144),
    "share of few clusters": (0.452516683, 0.452516683),
    "widest of three": (0.398443331, 0.398443331),
    "widest of two": (0.319175215, 0.319175215),
    "widest of three apart": (0.496711635, 0.496711635),
    "difference of shares": (0.33503993, 0.33503993),
    "within three files": (0.532984824, 0.532984824),
    "within two files of few": (3.16256712, 3.16256712),
    "within two files of fewer": (1.46733221, 1.46733221),
    "within one file": (0.531383282, 0.531383282),
    "skewed": (3.98360852, 4.46309168),
    "skewed to the other side": (3.98791664, 4.46837319),
    "symmetric": (3.0786286, 3.61226889),
    "resamples of one value": None,
    "symmetric resamples of one value": None,
    "bootstrap of clusters": None,
    "t of clusters": (0.473979511, 0.473979511),
    "t of rows and columns": (0.431493278, 0.431493278),
    "t of two values": (4.24071076, 4.24071076),
    "wider for other files": (0.702545761, inf),
    "bounded of clusters": None,
    "average precision at its best": (0.531516149, 0.531516149),
    "average precision at its worst": (0.0622850862, 0.0622850862),
    "average precision of three": (0.583875027, 0.583875027),
    "auc of one": None,
    "difference of three and three": None,
    "difference of two and 40": (44.4875023, 46.306536),
    "difference of one value": None,
    "bounded": (0.199030428, 0.199030428),
    "bounded on one side": None,
}


@pytest.mark.parametrize("kind", KINDS)
def test_how_far_an_interval_of_each_kind_should_reach(kind: str) -> None:
    found = reach(*KINDS[kind])
    assert found == (None if PINNED[kind] is None else pytest.approx(PINNED[kind], rel=1e-5))


CHANCES: list[tuple[MetricSource, float | None]] = [
    (ranked("auc"), 0.5),
    (MetricSource("auc", "v", options=SIDES, scale=2.0, offset=-1.0), 0.0),
    (ranked("tpr_at_fpr", fpr="0.01"), 0.01),
    (ranked("average_precision"), (1 / 3 + 1 / 2 + 1) / 3),
    (MetricSource("difference", "v", options={"first": {}, "second": {}}, offset=0.25), 0.25),
    (MetricSource("correlation", "v"), 0.0),
    (MetricSource.paired_difference("v", ("item",), {"role": "m"}, {"role": "c"}), 0.0),
    (MetricSource.mean("v"), None),
    (MetricSource("median", "v"), None),
    (MetricSource("needle.cliff", "v"), None),
]


@pytest.mark.parametrize(("source", "level"), CHANCES)
def test_what_chance_gives(source: MetricSource, level: float | None) -> None:
    found = chance_level(source, RowTable(sided([1.0], [0.0, 2.0])))
    assert found == (None if level is None else pytest.approx(level))


def test_a_reported_reach_is_the_longer_distance_of_a_whole_interval() -> None:
    assert reported_reach(Estimate(0.5, 0.25, 0.625)) == 0.25 and reported_reach(Estimate(0.5, 0.375, 0.75)) == 0.25
    for lacking in (Estimate(0.5), Estimate(0.5, 0.4), Estimate(0.5, None, 0.6), Estimate(None, 0.1, 0.2, note="-")):
        assert reported_reach(lacking) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "members" in KINDS[kind][0].options])
def test_scores_of_which_less_is_more_reach_as_far(kind: str) -> None:
    source, rows, method, limits = KINDS[kind]
    turned = MetricSource(source.statistic, "v", options={**source.options, "higher": False})
    assert reach(turned, [{**row, "v": -row["v"]} for row in rows], method, limits) == pytest.approx(
        reach(source, rows, method, limits)
    )
    said = MetricSource(source.statistic, "v", options={**source.options, "higher": True})
    assert reach(said, rows, method, limits) == reach(source, rows, method, limits)
