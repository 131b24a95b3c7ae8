"""AttemptWriter: records what one attempt of a case measures, at once and for good."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.evidence import Control, Figure
from lm_audit.findings.record import Finding
from lm_audit.runstore.layout import RunFolder, attempt_key
from lm_audit.runstore.ledger import Ledger, LineFile
from lm_audit.runstore.normalise import plain
from lm_audit.runstore.records import Artifact, Verdict
from lm_audit.sources.record import MetricSource
from lm_audit.stats.estimate import Estimate


class AttemptWriter:
    """Writes one attempt of one case into the ledger, its rows and artifacts into files beside it."""

    def __init__(self, run: RunFolder, ledger: Ledger, case_id: str, number: int):
        self.case_id = case_id
        self.number = number
        self._run = run
        self._ledger = ledger
        self._key = attempt_key(case_id, number, ledger.writer)
        self._rows: LineFile | None = None
        self._digest = hashlib.sha256()
        self._items: set[str] = set()
        self._written = 0
        self._process = os.getpid()

    def start(self, **fields: object) -> None:
        """Record that the attempt begins: audit, model, device, fingerprint and whatever else tells how."""
        self._write("case_start", **fields)

    def model(self, **fields: object) -> None:
        """Record what is known of the model once it is loaded: fingerprint, dtype, device."""
        self._write("model", **fields)

    def metric(self, name: str, estimate: Estimate, source: MetricSource | None = None) -> None:
        """Record a metric, and how it follows from the rows."""
        told = {} if source is None else {"source": source.to_json()}
        self._write("metric", name=name, estimate=estimate.to_json(), **told)

    def rows(self, rows: Iterable[Mapping[str, object]]) -> int:
        """Append item rows to the attempt's rows file and record how many, and the SHA-256 of all so far.

        Returns how many.
        Raises ``StoreError`` for a row without ``item``, or with one that this attempt had before.
        """
        self._refuse_forked()
        records = [self._checked_row(row) for row in rows]
        if not records:
            return 0
        if self._rows is None:
            self._rows = LineFile(_free_name(self._run.rows, f"{self._key}.jsonl"))
        for record in records:
            self._digest.update(self._rows.append(record))
        self._write("rows", file=self._relative(self._rows.path), n=len(records), sha256=self._digest.hexdigest())
        return len(records)

    def _checked_row(self, row: Mapping[str, object]) -> dict[str, Any]:
        if "item" not in row:
            raise StoreError(f"row without the key 'item', which names it within its case; its keys are {sorted(row)}")
        record: dict[str, Any] = plain(row, f"row {row['item']!r}")
        item = str(record["item"])
        if item in self._items:
            raise StoreError(f"row item {item!r} is recorded twice in {self.case_id}; items must be unique in a case")
        self._items.add(item)
        return record

    def figure(self, figure: Figure) -> None:
        """Record a figure, its data inline."""
        self._write(
            "figure",
            name=figure.name,
            title=figure.title,
            figure=figure.kind,
            data=figure.data,
            caption=figure.caption,
        )

    def attach(self, path: str | Path) -> Artifact:
        """Copy a file into the run and record its SHA-256; ``StoreError`` where it cannot be read."""
        source = Path(path)
        folder = self._run.artifacts / self._key
        try:
            folder.mkdir(parents=True, exist_ok=True)
            target = _free_name(folder, source.name)
            shutil.copyfile(source, target)
            with target.open("rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
        except OSError as error:
            raise StoreError(f"cannot attach {source}: {error.strerror or error}") from error
        artifact = Artifact(self._relative(target), digest)
        self._write("artifact", path=artifact.path, sha256=artifact.sha256)
        return artifact

    def control(self, control: Control) -> None:
        """Record what a control showed."""
        self._write(
            "control",
            role=control.role,
            passed=bool(control.passed),
            expected=control.expected,
            observed=control.observed,
        )

    def parameter(self, name: str, value: object) -> None:
        """Record how something was done."""
        self._write("parameter", name=name, value=value)

    def note(self, text: str) -> None:
        """Record a remark for the reader of the report."""
        self._write("note", text=text)

    def read(self, files: Mapping[str, str]) -> None:
        """Record which files the eval's code read, by name, and digests of what they held."""
        self._write("read", files=dict(files))

    def headline(self, metric: str) -> None:
        """Record which metric stands for the case in a summary."""
        self._write("headline", metric=metric)

    def finding(self, finding: Finding) -> None:
        """Record what is concluded."""
        self._write("finding", finding=finding.to_json())

    def verdict(self, verdict: Verdict) -> None:
        """Record how a gate came out."""
        self._write("verdict", metric=verdict.metric, word=verdict.word, limit=verdict.limit, reason=verdict.reason)

    def end(self, outcome: str, duration_s: float, message: str = "", **fields: object) -> None:
        """Record the end of the attempt and force everything onto the disk."""
        # How many records there are before this one tells a reader whether any was lost.
        self._write(
            "case_end", outcome=outcome, duration_s=duration_s, message=message, records=self._written, **fields
        )
        if self._rows is not None:
            self._rows.sync()
            self._rows.close()
            self._rows = None
        self._ledger.sync()

    def _refuse_forked(self) -> None:
        """The counts and checksums of an attempt are known to one process alone."""
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.case_id} records from a process that it forked: hand the value to the test, and record it there"
            )

    def _write(self, kind: Any, **fields: object) -> None:
        self._refuse_forked()
        self._ledger.write(kind, case_id=self.case_id, attempt=self.number, **fields)
        self._written += 1

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._run.path).as_posix()


def _free_name(folder: Path, name: str) -> Path:
    stem, suffix = Path(name).stem, Path(name).suffix
    candidate, count = folder / name, 2
    while candidate.exists():
        candidate, count = folder / f"{stem}-{count}{suffix}", count + 1
    return candidate
