"""Needle: is a fact found wherever it stands in prompts of exact length?"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.audits.needle.grid.plans import Asking, Plan, cell_id, plans, without_needles
from lm_audit.errors import UsageError
from lm_audit.models.capabilities import Capability
from lm_audit.plugin import Case, RunOptions, cases

if TYPE_CHECKING:
    from lm_audit.audits.measured_once import MeasuredOnce
    from lm_audit.audits.needle.answers.answered_cells import AnsweredCells
    from lm_audit.models import LanguageModel
    from lm_audit.plugin.record.evidence_fixture import Recorder

PLANS = Path(__file__).resolve().parents[1] / "fixtures" / "needle" / "plans.toml"

pytestmark = pytest.mark.needle


def grids(options: RunOptions) -> list[Plan]:
    """The grids of this run."""
    asking = Asking(template_of(options), options.chat_args, thinking=options.thinking_tokens > 0)
    return plans(options.option, options.size, options.seed, PLANS, asking, options.limit)


def template_of(options: RunOptions) -> str:
    """The frame of the task: what ``--chat`` says, or this audit's own option."""
    own = options.option("needle_template")
    if own in (None, "auto", "chat", "base"):
        mode: Any = {"chat": "on", "base": "off"}.get(own)
        return {"on": "chat", "off": "base"}.get(options.chat_mode(mode, "--needle-template"), "auto")
    if options.chat != "auto":
        raise UsageError(f"--chat {options.chat} and --needle-template {own!r} are two templates; leave one out")
    return str(own)


@pytest.fixture(scope="session")
def answered(measured_once: MeasuredOnce) -> AnsweredCells:
    """What this session has asked its models, for all workers to see."""
    from lm_audit.audits.needle.answers.answered_cells import AnsweredCells

    return AnsweredCells(measured_once)


def cell_cases(options: RunOptions) -> list[Case]:
    """One case for each length and depth; with ``--adaptive`` samples are chosen by one case a grid instead."""
    if options.option("adaptive"):
        return []
    return [
        Case(
            cell_id(plan, length, depth),
            {"plan": plan, "length": length, "depth": depth},
            cost=length / 1024,
            tokens=length,
        )
        for plan in grids(options)
        for length, depth in plan.cells
    ]


def has_template(case: Case, tokenizer: Any, options: RunOptions) -> None:
    """Refuse a template that this tokenizer lacks, and a length too short for the task, before weights load.

    A length of the size's own is skipped, one that the user named is an error.
    """
    from lm_audit.audits.needle.grid.feasible import smallest_length
    from lm_audit.audits.needle.samples.building import TooShort

    plan = case.params["plan"]
    smallest = smallest_length(plan, tokenizer)
    length = case.params.get("length", plan.lengths[-1] if plan else 0)
    if length >= smallest:
        return
    reason = TooShort(length, smallest)
    if plan.asked:
        raise reason
    pytest.skip(str(reason))


def skip_unmeasurable(model: LanguageModel, plan: Plan) -> list[int]:
    """The lengths of a plan that can be measured; skips with the reasons where none can."""
    from lm_audit.audits.needle.grid.whole_grid import measurable

    lengths, reasons = measurable(model, plan)
    if not lengths:
        pytest.skip("; ".join(dict.fromkeys(reasons)))
    return lengths


@cases(cell_cases, preflight=has_template, needs=[Capability.GENERATE])
def test_cell(
    case: Case,
    language_model: LanguageModel,
    evidence: Recorder,
    run_options: RunOptions,
    answered: AnsweredCells,
    audit_seed: int,
) -> None:
    """The samples of one length and depth."""
    from lm_audit.audits.needle.answers.evaluation import cell_evidence

    skip_unmeasurable(language_model, replace(case.params["plan"], lengths=(case.params["length"],)))
    scored = answered.cell(language_model, case.params["plan"], case.params["length"], case.params["depth"])
    options = {"scorer": run_options.option("needle_scorer"), "threshold": run_options.option("needle_threshold")}
    evidence.record(cell_evidence(scored, **options, seed=audit_seed))


def grid_cases(options: RunOptions) -> list[Case]:
    """One case for each grid: what its cells say together."""
    adaptive = options.option("adaptive")
    return [
        Case(plan.name, {"plan": plan, "adaptive": adaptive}, cost=0.1, tokens=plan.lengths[0])
        for plan in grids(options)
    ]


@cases(grid_cases, preflight=has_template, needs=[Capability.GENERATE])
def test_grid(
    case: Case,
    language_model: LanguageModel,
    evidence: Recorder,
    run_options: RunOptions,
    answered: AnsweredCells,
    audit_seed: int,
) -> None:
    """Accuracy over lengths and depths, the cliff and the worst cells."""
    from lm_audit.audits.needle.grid.whole_grid import adaptive_evidence, whole_evidence

    plan = case.params["plan"]
    skip_unmeasurable(language_model, plan)
    options = {"scorer": run_options.option("needle_scorer"), "threshold": run_options.option("needle_threshold")}
    if case.params["adaptive"]:
        precision = run_options.option("needle_precision")
        result = adaptive_evidence(language_model, plan, answered, precision=precision, seed=audit_seed, **options)
    else:
        result = whole_evidence(language_model, plan, answered, seed=audit_seed, **options)
    evidence.record(result)


def stub_cases(options: RunOptions) -> list[Case]:
    """Answerers of known behaviour: stubs, and a language model that looks needles up."""
    names = ("reads-the-needle", "reads-the-middle", "planted-model", "planted-model-middle")
    return [Case(name, control="positive") for name in names]


@cases(stub_cases)
def test_stub_control(case: Case, evidence: Recorder, audit_seed: int) -> None:
    """What reads the needle scores 1.0; what sees the middle alone finds what stands there, and only that."""
    from lm_audit.audits.needle.controls import stubs as controls

    control = {
        "reads-the-needle": controls.reader_control,
        "reads-the-middle": controls.middle_control,
        "planted-model": controls.planted_control,
        "planted-model-middle": controls.planted_middle_control,
    }[case.id]
    evidence.record(control(audit_seed))


def chance_cases(options: RunOptions) -> list[Case]:
    """Prompts without a needle."""
    built = [plan for plan in grids(options) if plan.config is not None]
    samples = tomllib.loads(PLANS.read_text(encoding="utf-8"))[options.size]["control_samples"]
    skip = None if built else "a folder's samples have needles; build one with --without-needle"
    plan = without_needles(built[0], samples) if built else None
    tokens = plan.lengths[0] if plan else None
    return [Case("no-needle", {"plan": plan}, control="negative", skip=skip, tokens=tokens)]


@cases(chance_cases, preflight=has_template, needs=[Capability.GENERATE])
def test_chance(case: Case, language_model: LanguageModel, evidence: Recorder, answered: AnsweredCells) -> None:
    """Without a needle there is nothing to find: any hit is by chance."""
    from lm_audit.audits.needle.controls.stubs import chance_evidence

    plan = case.params["plan"]
    length = skip_unmeasurable(language_model, plan)[0]
    samples = answered.samples(language_model, plan, length, plan.depths[0], range(plan.samples))
    evidence.record(chance_evidence(language_model, samples))
