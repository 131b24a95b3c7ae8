"""One line of the coverage table, and how a rate is counted over seeded repetitions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

SEED = 20240
RESAMPLES = 999


class Limits(Protocol):
    """What has an interval."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


@dataclass(frozen=True)
class Row:
    """A measured rate beside its nominal value. ``runs`` is None where the rate was computed exactly."""

    method: str
    setting: str
    nominal: float
    rate: float
    runs: int | None

    @property
    def error(self) -> float:
        """Standard error of the rate from the number of runs."""
        return 0.0 if self.runs is None else math.sqrt(self.rate * (1 - self.rate) / self.runs)


def generator(name: str) -> np.random.Generator:
    """A generator of its own for each case, so that adding a case changes no other."""
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


def rate_rows(
    setting: str, nominal: float, runs: int, once: Callable[[np.random.Generator, int], dict[str, bool]]
) -> Iterable[Row]:
    """Rows of the rates at which ``once(rng, seed)`` answers yes, one for each of its keys."""
    rng = generator(setting)
    hits: dict[str, int] = {}
    for run in range(runs):
        for method, hit in once(rng, run).items():
            hits[method] = hits.get(method, 0) + bool(hit)
    return [Row(method, setting, nominal, count / runs, runs) for method, count in hits.items()]


def markdown(rows: Iterable[Row], heading: str) -> str:
    """A Markdown table of the rows; a nominal value of 1 stands for none."""
    lines = [f"| method | setting | nominal | {heading} |", "| --- | --- | --- | --- |"]
    for row in rows:
        spread = " (exact)" if row.runs is None else f" ± {100 * row.error:.1f}"
        nominal = "-" if row.nominal == 1 else f"{100 * row.nominal:.0f}%"
        lines.append(f"| {row.method} | {row.setting} | {nominal} | {100 * row.rate:.1f}%{spread} |")
    return "\n".join(lines)


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks in a page."""
    whole = page.read_text(encoding="utf-8")
    head, tail = whole.split(begin)[0], whole.split(end)[1]
    page.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")
