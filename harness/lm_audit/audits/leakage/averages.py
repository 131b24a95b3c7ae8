"""Means over questions and over files; each interval says whether it speaks of these files or of files in general."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.leakage.unseen_files import Range, no_nearer
from lm_audit.stats import Estimate, bounded_mean, clustered_mean, studentised_mean
from lm_audit.stats.effective_number import effective_number
from lm_audit.stats.inputs import cluster_numbers

if TYPE_CHECKING:
    from lm_audit.audits.leakage.items.benchmark import Benchmark
    from lm_audit.evidence import Evidence
    from lm_audit.sources import MetricSource

Floats = NDArray[np.float64]

FEWEST_FILES = 6
"""From so many files on an interval speaks of files in general; with fewer, of the questions of these files only.

What is concluded of a benchmark is concluded of its own files: with :data:`FEWEST_FILES` and more the metrics that a
verdict rests on have an interval for them beside that for files in general (:func:`record_these_files`)."""

FEWEST = 8
"""Below so many questions there is no interval."""

WITHIN = 20
"""So many questions more than files tell how much they spread within files."""

Kind = Literal["counts", "values", "differences"]
"""Shares of a few options, whose values are few; numbers of any size, often skewed; paired differences, seldom so."""


def clusters_of(files: Sequence[str]) -> tuple[str, ...]:
    """The columns that a metric's source names as its clusters: the files where there are enough, else none."""
    return ("file",) if len(set(files)) >= FEWEST_FILES else ()


def mean_of(
    values: Floats,
    files: Sequence[str],
    *,
    unit: str,
    seed: int,
    chance: float | None = None,
    better: str | None = None,
    kind: Kind = "values",
    limits: Range | None = None,
    unseen: Range | None = None,
    general: bool = True,
    sampled: bool = False,
) -> Estimate:
    """The mean over questions [questions], NaN left out; ``files`` names each one's file.

    With :data:`FEWEST_FILES` files or more the interval takes files as the independent units (CR2, t). With fewer, or
    where it is not ``general``, it says what more questions of the same files would give, and is so described:
    bootstrap-t, of ``kind`` "counts" Gaffke's for bounded values, of "differences" a t interval. ``limits``: the range
    that no value can leave. ``unseen``: between what the mean of a file that was not drawn may lie, which the limits
    over files allow for (:func:`~lm_audit.audits.leakage.unseen_files.no_nearer`); where it is not given, of counts
    their limits, of differences from none to the upper one; of values, and of differences without limits, the interval
    is that of files like those at hand. ``sampled``: the questions were drawn from those of the files, so that chance
    also decided of how many each file has. Below :data:`FEWEST` questions no interval.
    """
    kept = np.isfinite(values)
    data, names = values[kept], [name for name, keep in zip(files, kept, strict=True) if keep]
    fields = {"unit": unit, "chance": chance, "better": better}
    if not len(data):
        return Estimate.not_estimable("no question has this condition", n=0, **fields)  # type: ignore[arg-type]
    if len(data) < FEWEST:
        note = f"{len(data)} questions give no interval, {FEWEST} do"
        return Estimate(float(data.mean()), n=len(data), method="mean", note=note, **fields)  # type: ignore[arg-type]
    many = general and len(set(names)) >= FEWEST_FILES
    found = clustered_mean(data, names) if many else _of_these_files(data, names, kind, limits, seed, sampled)
    if not many and found.low is None and limits is not None:
        # All values are equal: what a bounded value may still be is known.
        found = replace(bounded_mean(data, *limits, seed=seed), units=len(data))
    reach = unseen or _unseen(kind, limits) or (limits if found.low is None else None)
    if many and reach is not None:
        found = no_nearer(found, data, cluster_numbers(names), reach, seed=seed)
    if limits is not None and found.low is not None and found.high is not None:
        found = replace(found, low=max(found.low, limits[0]), high=min(found.high, limits[1]))
    if not many and len(set(names)) > 1:
        which = "drawn from the questions of" if sampled else "conditional on"
        found = replace(found, method=f"{found.method}; {which} these {len(set(names))} files")
    return replace(found, value=float(data.mean()), n=len(data), **fields)  # type: ignore[arg-type]


THESE_FILES = "these_files"
"""What ends the name of a metric whose interval speaks of the files of this benchmark alone."""


def of_these_files(values: Floats, files: Sequence[str], benchmark: Benchmark, **fields: Any) -> Estimate | None:
    """The mean over questions with an interval for the files of ``benchmark`` alone; ``fields`` as in :func:`mean_of`.

    Of a benchmark that was read whole: what more questions of the same files would give. Of a sample: what all its
    questions give. ``None`` with fewer than :data:`FEWEST_FILES` files, where :func:`mean_of` itself speaks of these.
    """
    names = [name for name, value in zip(files, values, strict=True) if np.isfinite(value)]
    if len(set(names)) < FEWEST_FILES:
        return None
    return mean_of(values, files, general=False, sampled=len(benchmark.items) < benchmark.usable, **fields)


def record_these_files(evidence: Evidence, name: str, own: Estimate | None, source: MetricSource | None) -> None:
    """Add what :func:`of_these_files` gave beside the metric ``name``, of whose ``source`` it is."""
    if own is not None:
        evidence.metric(f"{name}.{THESE_FILES}", own, None if source is None else replace(source, clusters=()))


def _unseen(kind: Kind, limits: Range | None) -> Range | None:
    if limits is None or kind == "values":
        return None
    return limits if kind == "counts" else (min(0.0, limits[1]), limits[1])


def _of_these_files(
    data: Floats, names: Sequence[str], kind: Kind, limits: tuple[float, float] | None, seed: int, sampled: bool
) -> Estimate:
    if kind == "counts" and limits is not None:
        return bounded_mean(data, *limits, seed=seed)
    files = len(set(names))
    if files > 1 and not sampled and len(data) - files >= FEWEST - 1:
        # Between the files nothing is drawn at random, so only the spread within them counts.
        means = dict(zip(dict.fromkeys(names), _file_means(data, names), strict=True))
        within = data - np.array([means[name] for name in names])
        data = data.mean() + within * ((len(data) - 1) / (len(data) - files)) ** 0.5
    if kind == "differences":
        # A cluster a question: the plain t interval.
        return replace(clustered_mean(data, range(len(data))), method="mean, t", units=None, fewest=None)
    return studentised_mean(data, seed=seed)


def _file_means(data: Floats, names: Sequence[str]) -> Floats:
    """The files' means, in the order of their first question."""
    places: dict[str, int] = {}
    numbers = np.array([places.setdefault(name, len(places)) for name in names])
    means: Floats = np.bincount(numbers, weights=data) / np.bincount(numbers)
    return means


@dataclass(frozen=True)
class FileWeights:
    """What a mean of file means needs to know of a benchmark of which perhaps only a sample was scored.

    ``weights`` [questions]: one over the number of usable questions of its file. ``share``: files with usable
    questions among all, since the published score counts a file without any as 0. ``scored``: share of all usable
    questions that were scored.
    """

    weights: Floats
    share: float
    scored: float

    @classmethod
    def of(cls, files: Sequence[str], benchmark: Benchmark) -> FileWeights:
        """``files``: the file of each question of ``benchmark`` that was scored."""
        here, sample = Counter(files), len(benchmark.items) < benchmark.usable
        # Of a benchmark that was read whole, what counts is what could be scored, as in the source.
        counts = {name: max(benchmark.by_file.get(name, 0) if sample else 0, count) for name, count in here.items()}
        named = {*benchmark.files, *here}
        there = sum(1 for name in named if (sample and benchmark.by_file.get(name)) or here.get(name))
        weights = np.array([1 / counts[name] for name in files], dtype=np.float64)
        return cls(weights, there / len(named), len(files) / max(benchmark.usable, 1) if sample else 1.0)


def file_mean(
    values: Floats,
    files: Sequence[str],
    weights: FileWeights,
    *,
    limits: tuple[float, float],
    seed: int,
    kind: Kind = "counts",
    chance: float | None = None,
    better: str | None = None,
) -> Estimate:
    """The published mean of file means, from all questions or from a sample of them; NaN are left out.

    A question stands for its file with one over the file's size, so that a sample of many files gives the score of all
    (Hajek 1971). The interval of ``kind`` "counts" is Gaffke's for bounded values with these weights, since hits are
    few and skewed; of "differences" the t interval of the ratio. Of a whole benchmark only the spread within files
    counts, of a sample also which questions were drawn: both intervals are as much narrower. In hits a question.
    """
    from scipy import stats

    kept = np.isfinite(values)
    data, w = values[kept], weights.weights[kept]
    names = [name for name, keep in zip(files, kept, strict=True) if keep]
    unit, n = "hits a question", len(data)
    if not n:
        return Estimate.not_estimable("no question", n=0, unit=unit, better=better, chance=chance)
    parts = w / w.sum()
    mean = float((parts * data).sum())
    method = "mean of file means" + ("" if weights.scored >= 1 else ", each question standing for its share of a file")
    found = Estimate(mean * weights.share, n=n, method=method, unit=unit, better=better, chance=chance)
    if n < FEWEST:
        return replace(found, note=f"{n} questions give no interval, {FEWEST} do")
    spread = _variance(data, names, parts, weights.scored)
    if kind == "differences" and spread.variance > 1e-24:
        half = float(stats.t.ppf(0.975, spread.freedom)) * spread.variance**0.5
        low, high = max(limits[0], mean - half), min(limits[1], mean + half)
        return replace(found, low=low * weights.share, high=high * weights.share, method=f"{method}; t interval")
    bounded = bounded_mean(data, *limits, weights=w, seed=seed)
    if bounded.low is None or bounded.high is None:
        return found
    low, high = (mean + spread.narrower * (limit - mean) for limit in (bounded.low, bounded.high))
    return replace(
        found, low=low * weights.share, high=high * weights.share, method=f"{method}; Gaffke's interval, bounded values"
    )


@dataclass(frozen=True)
class _Spread:
    """Variance and degrees of freedom of a weighted mean, and its standard error over that of questions drawn."""

    variance: float
    freedom: float
    narrower: float


def _variance(data: Floats, names: Sequence[str], parts: Floats, scored: float) -> _Spread:
    """Drawn questions for the part of a benchmark that was not scored, questions within their files for the part that
    was."""
    mean = float((parts * data).sum())
    drawn = float((parts**2 * (data - mean) ** 2 / (1 - np.minimum(parts, 0.9))).sum())
    # Satterthwaite: fewer degrees of freedom where some questions weigh more.
    effective = effective_number(parts**2) - 1
    places: dict[str, int] = {}
    numbers = np.array([places.setdefault(name, len(places)) for name in names])
    left = len(data) - len(places)
    if left < 1:
        return _Spread(drawn, max(1.0, effective), 1.0)
    centred = data - (np.bincount(numbers, weights=data) / np.bincount(numbers))[numbers]
    within = float((centred**2).sum()) / left * float((parts**2).sum())
    variance = (1 - scored) * drawn + scored * within
    # Of few questions a small spread within files may be chance.
    known = left >= WITHIN and variance > 1e-24
    narrower = min(1.0, (variance / drawn) ** 0.5) if known and drawn > 0 else 1.0
    return _Spread(variance, max(1.0, (1 - scored) * effective + scored * left), narrower)
