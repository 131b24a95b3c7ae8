"""Whether the ledgers in a run's folder are all of them, whole, and of this run.

Each process states its run in the first record that it writes, ``run.json`` states the run of every session, and the
controller's last record the sizes of all ledgers as it ended. A ledger that was copied in from another run would be
read as another attempt of the same cases; one that is gone, or was cut at the end of a line, leaves no torn record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.reader import Line
from lm_audit.runstore.records import DamagedLine

RUN_OF_SESSION = "run"
"""Key of a session in ``run.json``: the id of the run that it wrote."""

RUNS_OF_PARTS = "runs"
"""Key of a merged ``run.json``: the ids of its parts and of theirs."""


def runs_of(metadata: Mapping[str, Any]) -> frozenset[str]:
    """The ids that ledgers of this run may state: its own, those of merged parts, and of what it is a copy of.

    Empty where that is not known: older versions did not state it.
    """
    sessions = metadata.get("sessions")
    stated = [str(one.get(RUN_OF_SESSION, "")) if isinstance(one, Mapping) else "" for one in sessions or ()]
    parts = metadata.get(RUNS_OF_PARTS)
    of_parts = map(str, parts) if isinstance(parts, list) else ()
    return frozenset({*stated, *of_parts, str(metadata.get("run_id"))}) if stated and all(stated) else frozenset()


def own_lines(lines: Sequence[Line], runs: frozenset[str]) -> tuple[Sequence[Line], list[DamagedLine]]:
    """The lines of the run's own processes, and where those of others stand.

    If no ledger states a run of ``runs``, it is ``run.json`` that is another's: all lines stay, and it is named.
    """
    if not runs or all(line.record["run"] in runs for line in lines if isinstance(line.record.get("run"), str)):
        return lines, []
    stated = _stated(lines)
    foreign = {at for at, run in stated.items() if run not in runs}
    if all(run not in runs for run in stated.values()):
        theirs = min(stated.values())
        return lines, [
            DamagedLine("run.json", 1, f"is not this run's: it is of {min(runs)}, the ledgers are of {theirs}")
        ]
    kept = [line for line in lines if (line.file, line.number) not in foreign]
    damaged = []
    for file in sorted({file for file, _ in foreign}):
        numbers = [number for name, number in foreign if name == file]
        reason = f"{len(numbers)} records are of another run, {stated[file, min(numbers)]}, and are left out"
        damaged.append(DamagedLine(file, min(numbers), reason))
    return kept, damaged


def _stated(lines: Sequence[Line]) -> dict[tuple[str, int], str]:
    """By file and number the run of each line: what was last stated before it in its file, or first in it."""
    of_line: dict[tuple[str, int], str] = {}
    by_file: dict[str, list[Line]] = {}
    for line in lines:
        by_file.setdefault(line.file, []).append(line)
    for file, own in by_file.items():
        runs = {line.number: run for line in own if isinstance(run := line.record.get("run"), str)}
        run = next(iter(runs.values()), "")
        for line in own if runs else ():
            run = of_line[file, line.number] = runs.get(line.number, run)
    return of_line


def lost_ledgers(where: RunFolder, lines: Sequence[Line]) -> Iterator[DamagedLine]:
    """Ledgers that are gone, or shorter than when a session of the run ended."""
    sizes: dict[str, int] = {}
    for line in lines:
        told = line.record.get("ledgers")
        if line.kind == "run_end" and isinstance(told, Mapping):
            for name, size in _as_named_here(line.file, told):
                sizes[name] = max(size, sizes.get(name, 0))
    for name, size in sorted(sizes.items()):
        path = where.ledger / name
        try:
            found = path.stat().st_size
        except FileNotFoundError:
            yield DamagedLine(f"ledger/{name}", 0, "is gone, and with it what its process recorded")
        except (OSError, ValueError):
            continue  # Its reader says why.
        else:
            if found < size and path.is_file():
                yield DamagedLine(f"ledger/{name}", 0, f"was cut: {found} of {size} bytes are there")


def _as_named_here(file: str, told: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Names and sizes; a merge has put the part's id behind the names of all its ledgers."""
    stem = file.rpartition("/")[2].removesuffix(".jsonl")
    own = (name.removesuffix(".jsonl") for name in told)
    behind = next((stem.removeprefix(one) for one in own if f"{stem}.".startswith(f"{one}.")), "")
    for name, size in told.items():
        if isinstance(size, int) and "/" not in name:
            yield f"{name.removesuffix('.jsonl')}{behind}.jsonl", size


def ledger_sizes(where: RunFolder) -> dict[str, int]:
    """The sizes of the run's ledgers in bytes, by name, as its last record states them."""
    return {path.name: path.stat().st_size for path in sorted(where.ledger.glob("*.jsonl")) if path.is_file()}
