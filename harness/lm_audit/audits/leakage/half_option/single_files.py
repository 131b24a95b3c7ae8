"""Which single files of a benchmark are remembered: of many files one that was seen whole hardly moves the mean.

Each file has its own interval and its own test; both allow for as many files as took part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lm_audit.audits.leakage.averages import FEWEST, Floats
from lm_audit.stats import Estimate, holm
from lm_audit.stats.inputs import cluster_numbers

LEVEL = 0.05
LARGEST_FILE = "largest_file"
"""What ends the name of a metric that is the largest of its files' means."""


@dataclass(frozen=True)
class SingleFiles:
    """``largest``: the largest of the files' means, of the ``files`` that have questions enough; ``few`` have not.

    ``remembered``: those that stand apart at 5 % by Holm's procedure over the files, the surest first; ``p``: the
    smallest adjusted p-value.
    """

    largest: Estimate
    remembered: tuple[str, ...]
    p: float | None
    files: int
    few: int


def single_files(
    values: Floats, files: Sequence[str], p_of: Callable[[Sequence[bool]], float | None], *, unit: str
) -> SingleFiles | None:
    """What single files show of ``values`` [questions], NaN left out; ``None`` where fewer than two can tell.

    ``files`` names each question's file, ``p_of`` gives the p-value of the questions that it is told. The interval of
    the largest mean reaches from the largest lower to the largest upper limit of t intervals that hold together
    (Bonferroni), so that it holds whichever file is the largest in truth.
    """
    known = np.isfinite(values)
    many = Counter(name for name, here in zip(files, known, strict=True) if here)
    chosen = [name for name, count in many.items() if count >= FEWEST]
    if len(chosen) < 2:
        return None
    names = np.array(files, dtype=object)
    masks = {name: known & (names == name) for name in chosen}
    adjusted = holm([p_of(masks[name].tolist()) for name in chosen])
    sure = sorted((p, name) for name, p in zip(chosen, adjusted, strict=True) if p is not None)
    fewest = min(many[name] for name in chosen)
    return SingleFiles(
        _largest([values[masks[name]] for name in chosen], unit, fewest),
        tuple(name for p, name in sure if p <= LEVEL),
        sure[0][0] if sure else None,
        len(chosen),
        len(many) - len(chosen),
    )


def _largest(parts: Sequence[Floats], unit: str, fewest: int) -> Estimate:
    """The largest mean; ``units`` are the questions of the file that has fewest."""
    from scipy.special import stdtrit

    means = np.array([part.mean() for part in parts])
    errors = np.array([part.std(ddof=1) / len(part) ** 0.5 for part in parts])
    fields = {"n": sum(map(len, parts)), "unit": unit, "better": "lower", "chance": 0.0, "units": fewest}
    method = f"largest of {len(parts)} files, t at 5% over all"
    if not errors.all():
        note = "the questions of a file do not differ: nothing tells how far chance reaches"
        return Estimate(float(means.max()), method=method, note=note, **fields)  # type: ignore[arg-type]
    reach = np.array([float(stdtrit(len(part) - 1, 1 - LEVEL / 2 / len(parts))) for part in parts]) * errors
    low, high = float((means - reach).max()), float((means + reach).max())
    return Estimate(float(means.max()), low, high, method=method, **fields)  # type: ignore[arg-type]


def largest_of_files(values: Floats, codes: Sequence[int] | Floats, fewest: int = FEWEST) -> Floats:
    """The largest mean of files for each row of ``values`` (B, units), NaN left out; ``codes`` (units) number files."""
    member = np.asarray(codes)[:, None] == np.unique(codes)
    known = np.isfinite(values)
    counts = known.astype(np.float64) @ member
    sums = np.where(known, values, 0.0) @ member
    with np.errstate(invalid="ignore"):  # nothing divided by nothing
        means = np.where(counts >= fewest, sums / counts, -np.inf)
    largest: Floats = means.max(axis=1)
    return np.where(np.isfinite(largest), largest, np.nan)


def codes_of(files: Sequence[object]) -> Sequence[int]:
    """Files by number."""
    return [int(code) for code in cluster_numbers([str(name) for name in files])]
