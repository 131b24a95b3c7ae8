"""The cells of a session: each is built and answered once, whichever case (or worker) asks for it first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.audits.drawing import drawn
from lm_audit.audits.needle.answers.answerers import Answer, ModelAnswerer
from lm_audit.audits.needle.grid.cells import Scored, score_sample
from lm_audit.audits.needle.grid.folder import cell_file, read_samples, sample_files
from lm_audit.audits.needle.grid.plans import Plan
from lm_audit.audits.needle.haystack.named import haystack_of
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.samples.building import build_sample
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.errors import DataError
from lm_audit.textfiles import replacing

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel


class Book:
    """Scored samples by model, plan and cell; ``folder`` (of this test session) shows them to the other workers."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._scored: dict[tuple[Any, ...], list[Scored]] = {}
        self._haystacks: dict[tuple[Any, ...], Haystack] = {}

    def cell(self, model: LanguageModel, plan: Plan, length: int, depth: float) -> list[Scored]:
        """The cell's answered samples. Where prompts of one length share text, all of that length are answered."""
        cells = [(length, one) for one in plan.depths] if plan.shares else [(length, depth)]
        missing = [cell for cell in cells if self._known(model, plan, cell) is None]
        if missing:
            samples = {cell: self.samples(model, plan, *cell, range(plan.samples)) for cell in missing}
            answers = iter(ModelAnswerer(model).answer([sample for group in samples.values() for sample in group]))
            for cell, group in samples.items():
                self._keep(model, plan, cell, [score_sample(sample, next(answers)) for sample in group])
        found = self._known(model, plan, (length, depth))
        assert found is not None
        return found

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

    def _key(self, model: LanguageModel, plan: Plan, cell: tuple[int, float]) -> tuple[Any, ...]:
        settings = model.chat_settings.key  # a thought's room changes answers, a template's arguments change prompts
        return (model.fingerprint, str(model.device), str(model.dtype), settings, repr(plan), cell)

    def _file(self, key: tuple[Any, ...]) -> Path:
        return self._folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.json"

    def _known(self, model: LanguageModel, plan: Plan, cell: tuple[int, float]) -> list[Scored] | None:
        key = self._key(model, plan, cell)
        if key not in self._scored and self._file(key).exists():
            records = json.loads(self._file(key).read_text(encoding="utf-8"))
            self._scored[key] = [_scored(record) for record in records]
        return self._scored.get(key)

    def _keep(self, model: LanguageModel, plan: Plan, cell: tuple[int, float], scored: list[Scored]) -> None:
        key = self._key(model, plan, cell)
        self._scored[key] = scored
        self._folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._file(key)) as draft:
            draft.write_text(json.dumps([asdict(one) for one in scored]), encoding="utf-8")


def _scored(record: dict[str, Any]) -> Scored:
    return Scored(**{**record, "answer": Answer(**record["answer"]), "outputs": tuple(record["outputs"])})


def _from_folder(folder: str, length: int, depth: float) -> list[Sample]:
    named = Path(folder) / cell_file(length, depth)
    paths = [named] if named.exists() else sample_files(folder)
    found = [s for path in paths for s in read_samples(path) if (s.length, s.target_position) == (length, depth)]
    if not found:
        raise DataError(f"holds no sample of length {length} at {depth:g} percent", file=folder)
    return found
