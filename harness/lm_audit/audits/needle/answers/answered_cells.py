"""The cells of a session: each is built and answered once, whichever case (or worker) asks for it first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.audits.drawing import drawn
from lm_audit.audits.measured_once import FileForm, MeasuredOnce
from lm_audit.audits.needle.answers.answerers import Answer, ModelAnswerer
from lm_audit.audits.needle.grid.cells import Scored, score_sample
from lm_audit.audits.needle.grid.folder import cell_file, read_samples, sample_files
from lm_audit.audits.needle.grid.plans import Plan
from lm_audit.audits.needle.haystack.named import haystack_of
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.samples.building import build_sample
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.errors import DataError

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Cell = tuple[int, float]
"""Length in tokens, depth in percent."""


class AnsweredCells:
    """Scored samples by model, plan and cell, and the haystacks that they are built from."""

    def __init__(self, measured_once: MeasuredOnce):
        self._measured_once = measured_once
        self._haystacks: dict[tuple[Any, ...], Haystack] = {}

    def cell(self, model: LanguageModel, plan: Plan, length: int, depth: float) -> list[Scored]:
        """The cell's answered samples. Where prompts of one length share text, all of that length are answered."""
        cells = tuple((length, one) for one in plan.depths) if plan.shares else ((length, depth),)
        what = ("needle", repr(plan), cells)
        return self._measured_once(model, what, lambda: self._answered(model, plan, cells), form=_FORM)[length, depth]

    def _answered(self, model: LanguageModel, plan: Plan, cells: Sequence[Cell]) -> dict[Cell, list[Scored]]:
        samples = {cell: self.samples(model, plan, *cell, range(plan.samples)) for cell in cells}
        answers = iter(ModelAnswerer(model).answer([sample for group in samples.values() for sample in group]))
        return {cell: [score_sample(sample, next(answers)) for sample in group] for cell, group in samples.items()}

    def samples(
        self, model: LanguageModel, plan: Plan, length: int, depth: float, numbers: Sequence[int]
    ) -> list[Sample]:
        """The samples of a cell, built (those with these numbers) or read from the plan's folder (its limit)."""
        if plan.folder is not None:
            return drawn(_from_folder(plan.folder, length, depth), plan.limit, seed=plan.seed)
        assert plan.config is not None
        return [
            build_sample(
                self._haystack(model, plan),
                length=length,
                depth=depth,
                needle=plan.config.task,
                seed=plan.config.random_seed,
                index=number,
                options=plan.config.options,
            )
            for number in numbers
        ]

    def _haystack(self, model: LanguageModel, plan: Plan) -> Haystack:
        assert plan.config is not None
        key = (model.fingerprint, plan.config.content_hash())
        if key not in self._haystacks:
            self._haystacks.clear()  # One at a time: a long text's counts are large.
            self._haystacks[key] = haystack_of(plan.config, model.tokenizer)
        return self._haystacks[key]


def _write(scored: Mapping[Cell, Sequence[Scored]], path: Path) -> None:
    path.write_text(json.dumps([[*cell, [asdict(one) for one in group]] for cell, group in scored.items()]), "utf-8")


def _read(path: Path) -> dict[Cell, list[Scored]]:
    records = json.loads(path.read_text("utf-8"))
    return {(length, depth): [_scored(record) for record in group] for length, depth, group in records}


def _scored(record: dict[str, Any]) -> Scored:
    return Scored(**{**record, "answer": Answer(**record["answer"]), "outputs": tuple(record["outputs"])})


_FORM = FileForm(_write, _read)


def _from_folder(folder: str, length: int, depth: float) -> list[Sample]:
    named = Path(folder) / cell_file(length, depth)
    paths = [named] if named.exists() else sample_files(folder)
    found = [s for path in paths for s in read_samples(path) if (s.length, s.target_position) == (length, depth)]
    if not found:
        raise DataError(f"holds no sample of length {length} at {depth:g} percent", file=folder)
    return found
