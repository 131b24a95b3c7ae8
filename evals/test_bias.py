"""The bias audit: word preference across groups, the public benchmarks, counterfactual swaps and refusals."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.bias.grid.lexicon.limit import smaller_grid
from lm_audit.audits.bias.grid.lexicon.parts import PreferenceSet
from lm_audit.audits.bias.options import DATA_SETS
from lm_audit.audits.drawing import drawn
from lm_audit.errors import DataWarning
from lm_audit.models.capabilities import Capability
from lm_audit.plugin import Case, RunOptions, cases
from lm_audit.shared.textfiles import on_disk

if TYPE_CHECKING:
    from lm_audit.audits.bias.generated.counterfactual import SwapItem
    from lm_audit.audits.bias.generated.refusal import RefusalSet
    from lm_audit.audits.bias.grid.contrasts import Contrast
    from lm_audit.audits.bias.grid.lexicon.parts import Axis
    from lm_audit.audits.bias.grid.measurement import GridMeasurement
    from lm_audit.audits.measured_once import MeasuredOnce
    from lm_audit.models import LanguageModel
    from lm_audit.plugin.record.evidence_fixture import Recorder

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "bias"

pytestmark = pytest.mark.bias


@cases(
    [
        Case("published", {}),
        Case("corrected", {"leading_space": True, "first_token_only": False}),
    ],
    needs=[Capability.LOGLIKELIHOOD],
)
def test_minimal_probe(case: Case, language_model: LanguageModel, evidence: Recorder) -> None:
    """One pair, one template: the published logic, and beside it whole words with their space."""
    from lm_audit.audits.bias import minimal_probe, probe_evidence

    inputs = tomllib.loads((FIXTURES / "minimal_probe.toml").read_text(encoding="utf-8"))
    evidence.record(probe_evidence(minimal_probe(language_model, **inputs, **case.params)))


def grids(options: RunOptions) -> list[PreferenceSet]:
    """The shipped grids and the user's own; ``smoke`` cuts the Chinese one, whose words have many tokens."""
    shipped = [load_preference_set(FIXTURES / f"preference_{language}.toml") for language in ("en", "zh")]
    if options.size == "smoke" and options.limit is None:
        shipped[1] = replace(shipped[1], templates=shipped[1].templates[:4], pairs=shipped[1].pairs[:5])
    own = [load_preference_set(path) for path in options.option("bias_grid") or ()]
    return [smaller_grid(grid, options.limit, seed=options.seed) for grid in (*shipped, *own)]


def grid_cases(options: RunOptions) -> list[Case]:
    """One case for each axis of each grid."""
    asked_mode(options)
    found = []
    corrected = options.option("bias_boundary") != "none"
    needs = (Capability.LOGLIKELIHOOD, *((Capability.NEXT_TOKEN,) if corrected else ()))
    for number, grid in enumerate(grids(options)):
        name = grid.language if number < 2 else Path(str(grid.source)).stem
        found += [Case(f"{name}-{axis.name}", {"grid": grid, "axis": axis.name}, needs=needs) for axis in grid.axes]
    return found


def separable(case: Case, tokenizer: Any, options: RunOptions) -> Iterator[tuple[str, str]]:
    """Refuse words that the tokenizer cannot separate from their prompt, before weights load; the prompts."""
    from lm_audit.audits.bias.grid.lexicon.linting import require_separable
    from lm_audit.audits.bias.grid.lexicon.parts import render

    grid: PreferenceSet = case.params["grid"]
    require_separable(grid, tokenizer)
    grid_in_chat(tokenizer, options)
    longest = max((group for axis in grid.axes for group in axis.groups), key=len)
    return named("template", {one: render(one, longest) for one in grid.templates})


def named(kind: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each text with its name, the beginning of what the user wrote."""
    return ((f"{kind} {said[:60]!r}", text) for said, text in texts.items())


def grid_in_chat(tokenizer: Any, options: RunOptions) -> bool:
    """Whether a grid's prompts open the assistant's turn of the chat template."""
    return options.in_template(tokenizer, default="off", own=asked_mode(options), flag="--bias-mode")


def asked_mode(options: RunOptions) -> Any:
    """What ``--bias-mode`` says of the chat template; refuses one that ``--chat`` contradicts."""
    own: Any = {"raw": "off", "chat": "on"}.get(options.option("bias_mode"))
    options.chat_mode(own, "--bias-mode")
    return own


@cases(grid_cases, preflight=separable, needs=[Capability.LOGLIKELIHOOD])
def test_preference_grid(
    case: Case,
    language_model: LanguageModel,
    evidence: Recorder,
    audit_seed: int,
    run_options: RunOptions,
    measured_once: MeasuredOnce,
) -> None:
    """Which group of an axis the model speaks of more favourably."""
    from lm_audit.audits.bias import all_contrasts, axis_evidence, measure_grid

    boundary = run_options.option("bias_boundary")
    grid, margin = case.params["grid"], run_options.option("bias_margin")
    options: dict[str, Any] = {
        "boundary": None if boundary == "none" or grid.separator != " " else boundary,
        "mode": "chat" if grid_in_chat(language_model.tokenizer, run_options) else "raw",
    }

    def measure() -> tuple[GridMeasurement, list[Contrast]]:
        found = measure_grid(language_model, grid, **options)
        return found, all_contrasts(found, margin=margin, confidence=0.95, seed=audit_seed)

    # A grid's axes are corrected for their number together.
    what = ("grid", grid, margin, audit_seed, *options.values())
    measured, contrasts = measured_once(language_model, what, measure)
    axis, calibration = grid.axis(case.params["axis"]), run_options.option("bias_calibration")
    result = axis_evidence(measured, contrasts, axis, calibration=calibration, margin=margin, seed=audit_seed)
    result.parameters["dtype"] = str(language_model.dtype)
    evidence.record(result)


SAMPLES: dict[str, dict[str, int | None]] = {
    "smoke": {"crows_pairs": 60, "stereoset": 40, "winobias": 60, "winogender": 60, "bbq": 16, "cbbq": 8},
    "standard": {"crows_pairs": 300, "stereoset": 150, "winobias": 160, "winogender": 120, "bbq": 40, "cbbq": 16},
    "full": dict.fromkeys(DATA_SETS),
}


def public_cases(options: RunOptions) -> list[Case]:
    """One case for each public set; those without ``--data NAME=PATH`` skip and say so."""
    from lm_audit.audits.bias.benchmarks.public_sets import check_set

    found = []
    for name in DATA_SETS:
        source = options.data.get(name)
        if source is None:
            found.append(Case(name, skip=f"needs the public data set: --data {name}=PATH_OR_HUB_ID"))
        else:
            check_set(source, name)  # what is absent, broken or mostly unusable is named now, not later
            sample = options.items(SAMPLES[options.size][name])
            found.append(Case(name, {"source": source, "kind": name, "sample": sample}, cost=3.0))
    return found


def without_chat_form(options: RunOptions) -> list[str]:
    """What a case says whose texts have no chat form, where one was asked for."""
    if options.chat != "on":
        return []
    return ["--chat on has no effect here: these texts are scored as they stand, since their set has no chat form."]


@cases(public_cases, needs=[Capability.LOGLIKELIHOOD])
def test_public_benchmark(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """CrowS-Pairs, StereoSet, WinoBias, Winogender, BBQ and CBBQ by their papers' formulas."""
    from lm_audit.audits import bias

    kind = case.params["kind"]
    loaded = bias.load_set(case.params["source"], kind)
    chosen, notes = sampled(loaded.rows, case, run_options)
    options: dict[str, Any] = {"seed": audit_seed, "usage": loaded.usage}
    statistics = on_disk(case.params["source"]).path.parent / "occupations-stats.tsv"
    if kind == "winogender" and statistics.exists():
        options["occupation_stats"] = bias.load_occupation_stats(statistics)
    result = getattr(bias, "bbq" if kind == "cbbq" else kind)(language_model, chosen, **options)
    result.parameters.update({"rows": loaded.usage.n_read, "sampled": len(chosen)})
    result.notes += notes + without_chat_form(run_options)
    evidence.record(result)


def sampled(rows: Sequence[dict[str, Any]], case: Case, options: RunOptions) -> tuple[list[dict[str, Any]], list[str]]:
    """The sample of a public set, and the note that it has more rows than asked for: one of each kind at least.

    A ``DataWarning`` says so too where ``--limit`` asked.
    """
    from lm_audit.audits.bias import SETS

    asked: int | None = case.params["sample"]
    chosen = SETS[case.params["kind"]].sample(rows, asked, options.seed)
    if asked is None or len(chosen) <= asked:
        return chosen, []
    note = f"{len(chosen)} rows are drawn, one of each kind of row, where {asked} would leave some kinds out"
    if options.limit is not None:
        warnings.warn(f"{case.id}, --limit {options.limit}: {note}", DataWarning, stacklevel=2)
    return chosen, [note]


def generated_cases(options: RunOptions) -> list[Case]:
    """The sets whose questions have answers to choose from."""
    return [case for case in public_cases(options) if case.id in ("bbq", "cbbq")]


@cases(generated_cases, needs=[Capability.GENERATE])
def test_generated_choice(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """BBQ and CBBQ where the model writes the letter of its answer: another measurement than scoring the answers."""
    from lm_audit.audits import bias

    loaded = bias.load_set(case.params["source"], case.params["kind"])
    chosen, notes = sampled(loaded.rows, case, run_options)
    result = bias.bbq_generated(language_model, chosen, seed=audit_seed, usage=loaded.usage)
    result.parameters.update({"rows": loaded.usage.n_read, "sampled": len(chosen)})
    result.notes += notes
    evidence.record(result)


SWAPS = FIXTURES / "counterfactual_en.toml"


def swap_cases(options: RunOptions) -> list[Case]:
    """The shipped texts and the user's own, which are read now so that what is wrong with them is told now."""
    from lm_audit.audits.bias import load_swap_items

    own = list(dict.fromkeys(options.option("bias_swaps") or ()))
    for source in own:
        load_swap_items(source, like=SWAPS)
    shipped = Case("gender-en", {"file": str(SWAPS)})
    return [shipped, *(Case(own_name(one), {"source": one, "like": str(SWAPS)}) for one in own)]


def own_name(source: str) -> str:
    """What a case is called that runs a set of the user's."""
    from lm_audit.audits.given.given_rows import legal_name

    return f"own-{legal_name(Path(source).stem if Path(source).exists() else source.replace('/', '-'))}"


def given_source(case: Case) -> str | Path:
    """What a case reads: the source that the user named, or a shipped file."""
    return str(case.params["source"]) if "source" in case.params else FIXTURES / case.params["file"]


def swap_items(case: Case, options: RunOptions) -> list[SwapItem]:
    """The case's items: of swaps and of control swaps at most ``--limit`` each."""
    from lm_audit.audits.bias import load_swap_items

    items = load_swap_items(given_source(case), like=SWAPS)
    kinds = [[item for item in items if item.control is control] for control in (False, True)]
    return [item for kind in kinds for item in drawn(kind, options.items(None), seed=options.seed)]


def swap_lengths(case: Case, tokenizer: Any, options: RunOptions) -> Iterator[tuple[str, str]]:
    """The tokens of each text of a swap."""
    items = swap_items(case, options)
    texts = {before: f"{before} {item.suffix}" for item in items for before in (item.before, item.swapped)}
    return named("text", texts)


@cases(swap_cases, preflight=swap_lengths, needs=[Capability.CONTINUE])
def test_counterfactual_continuation(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """Does exchanging the gender change what the model writes more than any other change of wording does?"""
    from lm_audit.audits.bias import counterfactual_continuations

    items = swap_items(case, run_options)
    evidence.record(counterfactual_continuations(language_model, items, seed=audit_seed))


@cases(swap_cases, preflight=swap_lengths, needs=[Capability.LOGLIKELIHOOD])
def test_counterfactual_swap(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """Does exchanging the gender move what follows more than any other change of wording does?"""
    from lm_audit.audits.bias import counterfactual_swap

    result = counterfactual_swap(language_model, swap_items(case, run_options), seed=audit_seed)
    result.notes += without_chat_form(run_options)
    evidence.record(result)


REQUESTS = FIXTURES / "refusal_en.toml"


def refusal_cases(options: RunOptions) -> list[Case]:
    """One case an axis and language; ``smoke`` asks about gender, in English."""
    from lm_audit.audits.bias import load_refusal_set

    axes: dict[str, tuple[str, ...]] = {"en": ("gender", "race", "religion"), "zh": ("gender", "race", "residence")}
    if options.size == "smoke":
        axes = {"en": ("gender",)}
    found = [
        Case(f"{name}-{language}", {"axis": name, "file": str(FIXTURES / f"refusal_{language}.toml")})
        for language, names in axes.items()
        for name in names
    ]
    for source in dict.fromkeys(options.option("bias_requests") or ()):
        own = load_refusal_set(source, like=REQUESTS)
        given = {"source": source, "like": str(REQUESTS)}
        found += [Case(f"{own_name(source)}-{axis.name}", {"axis": axis.name, **given}) for axis in own.axes]
    return found


def has_chat_template(case: Case, tokenizer: Any, options: RunOptions) -> Iterator[tuple[str, str]]:
    """Refusals are asked for in the model's chat template; a base model has none. The tokens of the requests."""
    from lm_audit.audits.bias.grid.lexicon.parts import SLOT

    if not options.in_template(tokenizer, default="auto"):
        pytest.skip("no chat template (or --chat off), so nothing can be asked of the model as an assistant")
    refusals, axis = asked(case, options)
    longest = max(axis.groups, key=len)
    return named("request", {one: one.replace(SLOT, longest) for one in refusals.requests})


def asked(case: Case, options: RunOptions) -> tuple[RefusalSet, Axis]:
    """The case's requests, at most ``--limit``, and the groups that they are asked about."""
    from lm_audit.audits.bias import load_refusal_set

    refusals = load_refusal_set(given_source(case), like=REQUESTS)
    requests = drawn(refusals.requests, options.items(None), seed=options.seed)
    axis = next(axis for axis in refusals.axes if axis.name == case.params["axis"])
    return replace(refusals, requests=tuple(requests)), axis


@cases(refusal_cases, preflight=has_chat_template, needs=[Capability.GENERATE])
def test_refusal(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """Does the model refuse more often when the request names one group rather than another?"""
    from lm_audit.audits.bias import refusal_rates

    refusals, axis = asked(case, run_options)
    draws = {"n_seeds": 1} if run_options.size == "smoke" else {"n_seeds": 3, "temperature": 0.7}
    evidence.record(refusal_rates(language_model, refusals, axis, seed=audit_seed, **draws))


PLANTED_NATS = 2.0


@pytest.mark.control
@cases(
    [
        Case("planted-preference", {"size": PLANTED_NATS}, control="positive"),
        Case("meaningless-names", {"size": 0.0}, control="negative"),
    ]
)
def test_preference_control(case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int) -> None:
    """A planted preference of known size must be recovered; names without meaning must show none."""
    from lm_audit.audits.bias.grid.controls.cases import control_evidence

    templates = tomllib.loads((FIXTURES / "nonce_en.toml").read_text(encoding="utf-8"))["templates"]
    pairs = load_preference_set(FIXTURES / "preference_en.toml").pairs
    result = control_evidence(language_model, templates, pairs, size=case.params["size"], seed=audit_seed)
    evidence.record(result)


@pytest.mark.control
@cases([Case("made-rows", control="positive")])
def test_public_control(case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int) -> None:
    """Made rows in the forms of the public sets must score as plain forward passes say."""
    from lm_audit.audits.bias import public_control

    made = tomllib.loads((FIXTURES / "control_public.toml").read_text(encoding="utf-8"))
    evidence.record(public_control(language_model, made, seed=audit_seed))
