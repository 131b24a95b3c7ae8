"""Evidence of a whole grid: every cell, or those samples that adaptive sampling asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.audits.needle.answers.answerers import ModelAnswerer, too_long
from lm_audit.audits.needle.answers.evaluation import grid_evidence
from lm_audit.audits.needle.grid.adaptive import Place, find_cliff
from lm_audit.audits.needle.grid.cells import Scored, score_sample
from lm_audit.audits.needle.grid.feasible import smallest_length, thought_room
from lm_audit.audits.needle.samples.building import TooShort
from lm_audit.errors import UsageError
from lm_audit.sources import MetricSource

if TYPE_CHECKING:
    from lm_audit.audits.needle.answers.answered_cells import AnsweredCells
    from lm_audit.audits.needle.grid.plans import Plan
    from lm_audit.evidence import Evidence
    from lm_audit.models import LanguageModel


_OF_CELLS = ("truth", "answer", "thought", "around_needle")
"""Long columns of the rows, which the cells' own cases show."""


def whole_evidence(
    model: LanguageModel, plan: Plan, answered: AnsweredCells, *, scorer: str, threshold: float, seed: int
) -> Evidence:
    """Every cell that the model's context holds; answers and prompts stand in the rows of the cells' own cases."""
    lengths, left_out = measurable(model, plan)
    cells = [cell for cell in plan.cells if cell[0] in lengths]
    scored = [one for cell in cells for one in answered.cell(model, plan, *cell)]
    evidence = grid_evidence(scored, scorer=scorer, threshold=threshold, seed=seed)
    evidence.rows = [{name: value for name, value in row.items() if name not in _OF_CELLS} for row in evidence.rows]
    return _described(evidence, plan, left_out)


def adaptive_evidence(
    model: LanguageModel,
    plan: Plan,
    answered: AnsweredCells,
    *,
    scorer: str,
    threshold: float,
    precision: float,
    seed: int,
) -> Evidence:
    """Samples where the threshold is undecided, at most the plan's number a cell, until the cliff is known."""
    if plan.config is None:
        raise UsageError("--adaptive builds its samples; it cannot be used with --needle-folder")
    lengths, left_out = measurable(model, plan)
    answerer, scored = ModelAnswerer(model), list[Scored]()

    def ask(places: Sequence[Place]) -> list[float]:
        samples = [answered.samples(model, plan, length, depth, [number])[0] for length, depth, number in places]
        found = [score_sample(s, a) for s, a in zip(samples, answerer.answer(samples), strict=True)]
        scored.extend(found)
        return [one.score(scorer) for one in found]

    run = find_cliff(lengths, plan.depths, ask, threshold=threshold, most=plan.samples, precision=precision)
    evidence = grid_evidence(scored, scorer=scorer, threshold=threshold, seed=seed)
    source = MetricSource("needle.samples_spent", options={"full": run.full})
    evidence.metric("needle.samples_spent", run.spent, source)
    evidence.parameters.update({"adaptive": True, "precision": precision, "most_a_cell": plan.samples})
    evidence.notes.append(
        f"adaptive: {run.spent.note}; overall accuracy depends on where samples were spent; compare lengths and the "
        "cliff"
    )
    return _described(evidence, plan, left_out)


def measurable(model: LanguageModel, plan: Plan) -> tuple[list[int], list[str]]:
    """The plan's lengths that this model reads, its thought included, and the task fits in; why others are left out."""
    smallest = smallest_length(plan, model.tokenizer)
    thought = thought_room(plan, model.tokenizer, model.chat_settings.thinking_tokens)
    reasons = {
        length: too_long(model, length, thought) or (str(TooShort(length, smallest)) if length < smallest else None)
        for length in plan.lengths
    }
    return [n for n, reason in reasons.items() if not reason], [reason for reason in reasons.values() if reason]


def _described(evidence: Evidence, plan: Plan, left_out: Sequence[str]) -> Evidence:
    evidence.notes += [f"not measured: {reason}" for reason in left_out]
    settings: dict[str, Any] = {"lengths": list(plan.lengths), "depths": list(plan.depths), "samples": plan.samples}
    if plan.config is not None:
        names = (
            "type_haystack",
            "type_needle_k",
            "type_needle_v",
            "template",
            "boundary",
            "windows",
            "tokens_to_generate",
        )
        settings |= {name: getattr(plan.config, name) for name in names}
    evidence.parameters.update(settings | ({"folder": plan.folder} if plan.folder else {}))
    return evidence
