"""The instrument broken on purpose: each fault must be noticed by the controls that guard against it.

A scoring fault must fail every control, since all of them go through the scorer. A fault of the reported numbers must
fail the controls of the part in which it is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.bias.answers_known import wrong_of_known_answers
from lm_audit.audits.bias.benchmarks import public_controls
from lm_audit.audits.bias.benchmarks.bbq.scores import bbq_scores
from lm_audit.audits.bias.benchmarks.crows_pairs import audit as crows_audit
from lm_audit.audits.bias.benchmarks.public_controls import public_control
from lm_audit.audits.bias.benchmarks.stereoset import audit as stereoset_audit
from lm_audit.audits.bias.benchmarks.wino import answered as wino_answered
from lm_audit.audits.bias.conclusions import preference_findings
from lm_audit.audits.bias.grid import contrasts, disparity, preference
from lm_audit.audits.bias.grid.controls import cases as grid_controls
from lm_audit.audits.bias.grid.controls import planted
from lm_audit.audits.bias.grid.controls.cases import control_evidence
from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.bias.grid.measurement import measure_grid
from lm_audit.audits.bias.grid.minimal import ProbeResult
from lm_audit.evidence import Control
from lm_audit.models import LanguageModel, load_model
from lm_audit.models.scoring.results import TokenScores
from lm_audit.stats import Estimate, crossed_contrast
from lm_audit.stats.bootstrap import clustered
from lm_audit.stats.means import crossed, two_way
from lm_audit.stats.means import disparity as disparity_test
from tests.audits.faults_and_guards import in_turns
from tests.audits.reporting_faults import CHANCES, COUNTS, WIDTHS

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "bias"
TEMPLATES = tomllib.loads((FIXTURES / "nonce_en.toml").read_text())["templates"]
MADE = tomllib.loads((FIXTURES / "control_public.toml").read_text(encoding="utf-8"))
PAIRS = load_preference_set(FIXTURES / "preference_en.toml").pairs
CONTROLS = ("planted-preference", "meaningless-names", "made-rows")
Scorer = Callable[..., list[TokenScores]]


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return load_model("tiny", device="cpu")


PLANTED: dict[tuple[Any, ...], Any] = {}


@pytest.fixture(scope="module", autouse=True)
def planted_once() -> Iterator[None]:
    """What is planted, and what plain forward passes say of it, hangs on no fault of this table: once for each seed."""

    def once(name: str) -> Callable[..., Any]:
        honest = getattr(grid_controls, name)

        def answer(model: LanguageModel, templates: Any, *rest: Any) -> Any:
            key = (name, id(model), repr(templates), repr(rest))
            if key not in PLANTED:
                PLANTED[key] = honest(model, templates, *rest)
            return PLANTED[key]

        return answer

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_clearly_planted", "_plain_choice"):
            patch.setattr(grid_controls, name, once(name))
        yield
    PLANTED.clear()


@pytest.fixture(scope="module")
def told() -> tuple[int, list[str]]:
    """What answers known beforehand show of sound parts: nothing."""
    compared, faults = wrong_of_known_answers()
    assert faults == []
    return compared, faults


@pytest.fixture
def answers_told_once(told: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers known beforehand show nothing: faults of scores and rows, of public sets and of what is reported must be
    noticed by the rest of the control.
    """
    monkeypatch.setattr(public_controls, "wrong_of_known_answers", lambda: told)


def run(control: str, model: LanguageModel, seed: int = 0) -> Control:
    if control == "made-rows":
        found = public_control(model, MADE, seed=seed).control
    else:
        size = 2.0 if control == "planted-preference" else 0.0
        found = control_evidence(model, TEMPLATES, PAIRS, size=size, seed=seed).control
    assert found is not None
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("control", CONTROLS)
def test_controls_pass_when_all_is_well(control: str, seed: int, tiny: LanguageModel) -> None:
    """No chance is in the comparison with plain passes; benchmarks/controls/real.py runs more seeds."""
    verdict = run(control, tiny, seed)
    assert verdict.passed, verdict.observed


def off_by_one(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Every token gets the log-probability of the one before it."""
    return [replace(one, logprobs=np.roll(one.logprobs, 1) - 0.3) for one in score(model, requests, **options)]


def prompts_swapped(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Each target is scored after the next request's prompt."""
    prefixes = [prefix for prefix, _ in requests]
    moved = [prefixes[(i + 7) % len(prefixes)] for i in range(len(prefixes))]
    same = [m if type(m) is type(p) else p for m, p in zip(moved, prefixes, strict=True)]
    return score(model, [(prefix, target) for prefix, (_, target) in zip(same, requests, strict=True)], **options)


def prompt_ignored(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Every target is scored after the first request's prompt."""
    first = {type(prefix): prefix for prefix, _ in reversed(requests)}
    if not isinstance(requests[0][0], str) and all(list(p) == list(requests[0][0]) for p, _ in requests):
        return score(model, [([*prefix, *target[:1]], target) for prefix, target in requests], **options)
    return score(model, [(first[type(prefix)], target) for prefix, target in requests], **options)


def noise(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Random log-probabilities."""
    rng = np.random.default_rng(0)
    scores = score(model, requests, **options)
    return [replace(one, logprobs=-rng.exponential(4.0, len(one.logprobs))) for one in scores]


def constant(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """One log-probability for every token."""
    return [replace(one, logprobs=np.full(len(one.logprobs), -3.0)) for one in score(model, requests, **options)]


def identical(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Every request is answered with the first one's scores."""
    scores = score(model, requests, **options)
    return [replace(one, logprobs=np.resize(scores[0].logprobs, len(one.logprobs))) for one in scores]


def reversed_sign(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Likely and unlikely exchanged."""
    return [replace(one, logprobs=-9.0 - one.logprobs) for one in score(model, requests, **options)]


def small_shift(score: Scorer, model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """A third of a nat on every second request: a fault that no picture would show."""
    scores = score(model, requests, **options)
    return [replace(one, logprobs=one.logprobs - 0.34 * (i % 2)) for i, one in enumerate(scores)]


FAULTS = (
    off_by_one,
    prompts_swapped,
    prompt_ignored,
    noise,
    constant,
    identical,
    reversed_sign,
    small_shift,
)


@pytest.mark.usefixtures("answers_told_once")
@pytest.mark.parametrize(
    ("fault", "control"),
    [
        pytest.param(fault, control, id=f"{fault.__name__}-{control}", marks=marks)
        for number, fault in enumerate(FAULTS)
        for control, marks in in_turns(number, CONTROLS)
    ],
)
def test_every_control_fails_under_every_fault_of_the_scorer(
    control: str, fault: Callable[..., Any], tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = LanguageModel.loglikelihood

    def broken(model: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
        found: list[TokenScores] = fault(honest, model, requests, **options)
        return found

    monkeypatch.setattr(LanguageModel, "loglikelihood", broken)
    verdict = run(control, tiny)
    assert not verdict.passed and "plain forward passes" in verdict.observed


def _contrast_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = crossed_contrast
    monkeypatch.setattr(contrasts, "crossed_contrast", lambda table, **options: honest(-table, **options))


def _contrast_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = crossed_contrast

    def made(table: Any, **options: Any) -> Any:
        found = honest(table, **options)
        return replace(found, difference=Estimate(3.0, 2.9, 3.1, n=36))

    monkeypatch.setattr(contrasts, "crossed_contrast", made)


def _labels_shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the two groups change places after measuring."""
    honest = measure_grid

    def made(*arguments: Any, **options: Any) -> Any:
        found = honest(*arguments, **options)
        return replace(found, groups=found.groups[::-1])

    monkeypatch.setattr(grid_controls, "measure_grid", made)


def _items_identical(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = measure_grid

    def made(*arguments: Any, **options: Any) -> Any:
        found = honest(*arguments, **options)
        return replace(found, logprobs=np.broadcast_to(found.logprobs[:1, :1], found.logprobs.shape))

    monkeypatch.setattr(grid_controls, "measure_grid", made)


def _disparity_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = disparity.max_min_disparity

    def made(values: Any, **options: Any) -> disparity.Disparity:
        return replace(honest(values, **options), estimate=Estimate(7.0, 6.0, 8.0, n=36))

    monkeypatch.setattr(preference, "max_min_disparity", made)


def _p_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = disparity.max_min_disparity

    def made(values: Any, **options: Any) -> Any:
        return replace(honest(values, **options), two_way=Estimate(0.5, n=36, confidence=None))

    monkeypatch.setattr(preference, "max_min_disparity", made)


GRID_FAULTS = (
    _contrast_reversed,
    _contrast_constant,
    _labels_shuffled,
    _items_identical,
    _disparity_constant,
    _p_constant,
)


@pytest.mark.parametrize(
    "fault",
    GRID_FAULTS,
    ids=lambda fault: fault.__name__.strip("_"),
)
def test_the_planted_preference_guards_the_numbers_of_the_grid(
    fault: Callable[[pytest.MonkeyPatch], None], tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    assert not run("planted-preference", tiny).passed


def _replaced(module: Any, name: str, fault: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """``fault(honest, table, ...)`` in place of a function of tables, wherever its module uses it."""

    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        honest = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *words, **options: fault(honest, *words, **options))

    return put


def _twice(honest: Callable[..., Any], table: Any, *rest: Any, **options: Any) -> Any:
    """Each template and each pair counts twice, in a table or in tables of several groups."""
    return honest(np.tile(table, (2, 2)), *rest, **options)


def _cells_exchanged(honest: Callable[..., Any], values: Any, *rest: Any, **options: Any) -> Any:
    """Labels are permuted in every cell by itself, as if cells were independent."""
    return honest(values.reshape(len(values), 1, -1), *rest, **options)


def _never_sure(honest: Callable[..., Any], *words: Any, **options: Any) -> float:
    return 0.5


INSENSITIVE = (
    ("disparity", _replaced(disparity_test, "mean_errors", _twice)),
    ("contrast", _replaced(two_way, "two_way_variance", _twice)),
    ("interval of the contrast", _replaced(two_way, "two_way_variance", _twice)),
    ("equivalence", _replaced(two_way, "two_way_variance", _twice)),
    ("interval of the group score", _replaced(clustered, "_two_way_t_of", _twice)),
    ("sign flips", _replaced(crossed, "clustered_sign_flip", _twice)),
    ("permutation", _replaced(crossed, "_max_min_p", lambda honest, means, *rest: honest(np.tile(means, 2), *rest))),
    ("permutation", _replaced(crossed, "_max_min_p", _never_sure)),
)


@pytest.mark.parametrize(("test", "fault"), INSENSITIVE, ids=[f"{i} {test}" for i, (test, _) in enumerate(INSENSITIVE)])
def test_meaningless_names_guard_against_tests_that_count_clusters_twice(
    test: str, fault: Callable[[pytest.MonkeyPatch], None], tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the grid reports and what the control computes are broken alike, so that they agree."""
    fault(monkeypatch)
    control = run("meaningless-names", tiny, seed=2)
    assert not control.passed
    assert f"{test}: says" in control.observed and "its cells give" not in control.observed


def _counted(**fields: Any) -> Callable[..., Any]:
    def made(honest: Callable[..., Any], *words: Any, **options: Any) -> Any:
        found = honest(*words, **options)
        return replace(found, difference=replace(found.difference, **fields))

    return made


@pytest.mark.parametrize("fields", [{"n": 72}, {"units": 36}, {"n": None}], ids=str)
@pytest.mark.parametrize("control", ["planted-preference", "meaningless-names"])
def test_a_contrast_that_counts_its_cells_wrongly_is_noticed(
    control: str, fields: dict[str, Any], tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replaced(contrasts, "crossed_contrast", _counted(**fields))(monkeypatch)
    verdict = run(control, tiny)
    assert not verdict.passed and "is said to rest on" in verdict.observed


@pytest.mark.parametrize("metric", ["p_two_way", "p_sign_flip", "p_equivalence"])
def test_a_p_value_that_is_not_that_of_the_cells_is_noticed(
    metric: str, tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"p_two_way": "holm_two_way", "p_sign_flip": "holm_sign_flip"}.get(metric, metric)
    honest = contrasts.all_contrasts

    def made(*words: Any, **options: Any) -> Any:
        def moved(one: contrasts.Contrast) -> contrasts.Contrast:
            changes: dict[str, Any] = {name: (getattr(one, name) or 0.0) / 2 + 0.3}
            return replace(one, **changes)

        return [moved(one) for one in honest(*words, **options)]

    monkeypatch.setattr(grid_controls, "all_contrasts", made)
    verdict = run("meaningless-names", tiny)
    assert not verdict.passed and "its cells give" in verdict.observed


def _grid_changed(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """What was measured of the grid, put through ``change``."""

    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        honest = measure_grid
        monkeypatch.setattr(grid_controls, "measure_grid", lambda *words, **options: change(honest(*words, **options)))

    return put


def _one_draw_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed of the names is ignored: every template gets the same two."""
    honest = planted.nonce_names
    monkeypatch.setattr(planted, "nonce_names", lambda n, *, seed: honest(2, seed=seed) * (n // 2))


def _public_rows(change: Callable[[list[Any]], list[Any]]) -> Callable[[pytest.MonkeyPatch], None]:
    """The rows of a public set, put through ``change`` before they are scored."""

    def put(monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("crows_pairs", "stereoset", "winobias"):
            honest = getattr(public_controls, name)
            monkeypatch.setattr(
                public_controls, name, lambda model, rows, _=honest, **options: _(model, change(rows), **options)
            )

    return put


def _said_in_a_note(patch: pytest.MonkeyPatch) -> None:
    honest = preference.conclusion
    patch.setattr(preference, "conclusion", lambda *words: honest(*words).replace(" favours", " disfavours"))


def _said_in_a_finding(patch: pytest.MonkeyPatch) -> None:
    def turned(contrasts: Any, *words: Any) -> Any:
        return preference_findings(
            [replace(one, group=one.reference, reference=one.group) for one in contrasts], *words
        )

    patch.setattr(preference, "preference_findings", turned)


def _shown(**changes: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """The contrasts of the table, some of their fields put through a change."""

    def fault(honest: Callable[..., Any], *words: Any) -> Any:
        *before, found = words
        return honest(*before, [replace(one, **{k: f(getattr(one, k)) for k, f in changes.items()}) for one in found])

    return _replaced(preference, "grid_figures", fault)


GRID = ("planted-preference", "meaningless-names")
REPORTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    **{fault: (apply, CONTROLS) for fault, apply in (WIDTHS | CHANCES | COUNTS).items()},
    "cells shifted by one template": (
        _grid_changed(lambda found: replace(found, logprobs=np.roll(found.logprobs, 1, axis=0))),
        GRID,
    ),
    "one draw of names for all templates": (_one_draw_for_all, ("meaningless-names",)),
    "the disfavoured side is said to be favoured, in a note": (_said_in_a_note, ("planted-preference",)),
    "the disfavoured side is said to be favoured, in a finding": (_said_in_a_finding, ("planted-preference",)),
    "d_z of another sign": (_shown(d_z=lambda value: -value), GRID),
    "d_z in population deviations": (_shown(d_z=lambda value: value * 1.2**0.5), GRID),
    "d_z is not shown": (_shown(d_z=lambda value: None), GRID),
    "weat of another sign": (_shown(weat=lambda value: -value), GRID),
    "weat in population deviations": (_shown(weat=lambda value: value * (12 / 11) ** 0.5), GRID),
    "sides of the table exchanged": (
        _shown(difference=lambda one: replace(one, value=-one.value, low=-one.high, high=-one.low)),
        GRID,
    ),
    "one side's cells are the other's": (
        _grid_changed(lambda found: replace(found, logprobs=found.logprobs[:, [0] * found.logprobs.shape[1]])),
        GRID,
    ),
    "half of the rows not scored": (_public_rows(lambda rows: rows[::2]), ("made-rows",)),
    "rows shifted by one": (_public_rows(lambda rows: [*rows[1:], *rows[:1]]), ("made-rows",)),
}


@pytest.mark.usefixtures("answers_told_once")
@pytest.mark.parametrize(
    ("fault", "control"), [(fault, name) for fault, (_, guards) in REPORTED.items() for name in guards]
)
def test_faults_between_cells_and_report_are_noticed(
    fault: str, control: str, tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    REPORTED[fault][0](monkeypatch)
    try:
        passed = run(control, tiny).passed
    except ValueError:  # Rows that do not fit each other: an error on the way is noticed, too.
        passed = False
    assert not passed


def _probed(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Callable[..., Any]:
    """What the minimal probe measured, its rows put through a change; the mean is that of the changed rows."""

    def fault(honest: Callable[..., Any], *words: Any, **options: Any) -> Any:
        rows = change([dict(row) for row in honest(*words, **options).rows])
        mean = float(np.mean([row["bias"] for row in rows]))
        rows = [{**row, "bias_centred": row["bias"] - mean} for row in rows]
        return ProbeResult(tuple(rows), mean, tuple(row["group"] for row in rows))

    return fault


def _words_turned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"lp_pos": row["lp_neg"], "lp_neg": row["lp_pos"], "bias": -row["bias"]} for row in rows]


def _groups_turned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = [row["group"] for row in rows]
    return [row | {"group": name} for row, name in zip(rows, [*names[1:], names[0]], strict=True)]


def _probe_metric(name: str, change: Callable[[float], float]) -> Callable[..., Any]:
    def fault(honest: Callable[..., Any], result: Any) -> Any:
        found = honest(result)
        found.metrics[name] = replace(found.metrics[name], value=change(found.metrics[name].value))
        return found

    return fault


def _other_reading(honest: Callable[..., Any], *words: Any, **options: Any) -> Any:
    """Whole words are asked for and first tokens read, or the other way round."""
    return honest(*words, **options | {"first_token_only": not options["first_token_only"]})


PROBES: dict[str, tuple[str, Callable[..., Any]]] = {
    "words exchanged": ("minimal_probe", _probed(_words_turned)),
    "groups renamed": ("minimal_probe", _probed(_groups_turned)),
    "a group lost": ("minimal_probe", _probed(lambda rows: rows[1:])),
    "all groups the first": (
        "minimal_probe",
        _probed(lambda rows: [rows[0] | {"group": row["group"], "item": row["group"]} for row in rows]),
    ),
    "bias is the positive word's alone": (
        "minimal_probe",
        _probed(lambda rows: [row | {"bias": row["lp_pos"]} for row in rows]),
    ),
    "first tokens for whole words": ("minimal_probe", _other_reading),
    "range of another sign": ("probe_evidence", _probe_metric("bias.probe_range", lambda value: -value)),
    "mean without its sign": ("probe_evidence", _probe_metric("bias.probe_mean", lambda value: abs(value) + 1e-3)),
    "a group's bias off by the mean": ("probe_evidence", _probe_metric("bias.probe.man", lambda value: value + 0.01)),
}


@pytest.mark.parametrize("fault", PROBES)
def test_made_rows_guard_the_minimal_probe(fault: str, tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    name, broken = PROBES[fault]
    findings = public_controls._Findings(1e-3)
    public_controls._probe(tiny, findings)
    assert findings.faults == [] and findings.compared >= 2 * (5 + 6 + 5)
    _replaced(public_controls, name, broken)(monkeypatch)
    findings = public_controls._Findings(1e-3)
    public_controls._probe(tiny, findings)
    assert findings.faults


def _ends_turned(score: Any) -> Any:
    return replace(score, suffix=score.suffix[::-1])


def _ends_shifted(means: Any, suffix: Any) -> Any:
    return means, np.roll(suffix, 1, axis=0)


def _mirrored(honest: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **options: 100 - honest(*arguments, **options)


@pytest.mark.usefixtures("answers_told_once")
@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (crows_audit, "preference_share", lambda honest: _mirrored(honest)),
        (crows_audit, "preference_share", lambda honest: lambda pairs: np.full(len(pairs), 50.0)),
        (stereoset_audit, "term_table", lambda honest: lambda table, targets: honest(table[:, [1, 0, 2]], targets)),
        (stereoset_audit, "term_table", lambda honest: lambda table, targets: honest(np.zeros_like(table), targets)),
        (wino_answered, "correct", lambda honest: lambda scores, questions: np.full(len(questions), 0.25)),
        (crows_audit, "_shared", lambda honest: lambda *ids: max(0, honest(*ids) - 1)),
        (crows_audit, "_pair_score", lambda honest: lambda *pair: _ends_turned(honest(*pair))),
        (stereoset_audit, "_shared_end", lambda honest: lambda ids: 0),
        (stereoset_audit, "score_items", lambda honest: lambda *words: _ends_shifted(*honest(*words))),
        (stereoset_audit, "_suffix_metric", lambda honest: lambda *words: None),
        (crows_audit, "clustered_mean", lambda honest: lambda *words, **o: replace(honest(*words, **o), chance=None)),
    ],
    ids=["crows mirrored", "crows constant", "stereoset labels shuffled", "stereoset constant", "wino constant",
         "crows ends one token late", "crows ends turned", "stereoset ends lost", "stereoset ends of the item before",
         "stereoset ends not reported", "crows chance lost"],
)  # fmt: skip
def test_made_rows_guard_the_numbers_of_the_public_sets(
    module: Any, name: str, fault: Callable[..., Any], tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fault(getattr(module, name)))
    assert not run("made-rows", tiny).passed


@pytest.mark.usefixtures("answers_told_once")
def test_made_rows_guard_the_target_of_bbq(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_audit.audits.bias.benchmarks.bbq import audit as bbq_audit

    honest = bbq_scores
    monkeypatch.setattr(
        bbq_audit,
        "bbq_scores",
        lambda items, choices: replace(honest(items, choices), accuracy_ambig=0.5, bias_ambig=0.1),
    )
    assert not run("made-rows", tiny).passed
