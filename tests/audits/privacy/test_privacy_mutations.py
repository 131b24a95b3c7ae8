"""Break the instrument on purpose: which control notices which fault, and how often sound controls pass.

Faults of the scorer are planted into the one call that every score comes from (``LanguageModel.loglikelihood``), faults
of the bookkeeping into the table of scores; the controls then run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from lm_audit.audits.privacy import audit as privacy_audit
from lm_audit.audits.privacy import statistics
from lm_audit.audits.privacy.attribution import changes
from lm_audit.audits.privacy.attribution.changes import Frames
from lm_audit.audits.privacy.audit import blind_evidence, evidence_of, score_stages
from lm_audit.audits.privacy.controls import trained_controls
from lm_audit.audits.privacy.controls.bigrams import bigram_model
from lm_audit.audits.privacy.controls.known_scores import known_scores
from lm_audit.audits.privacy.controls.trained_controls import PlantedMemory
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.measure import membership, source_columns, stress
from lm_audit.audits.privacy.measure import scores as scoring
from lm_audit.audits.privacy.measure import stage_scores as stagescores
from lm_audit.audits.privacy.measure.blind import blind_baseline, noticed_auc, separation
from lm_audit.audits.privacy.measure.stage_scores import StageScores
from lm_audit.audits.privacy.measured_cases import stage_slice, transition_slice
from lm_audit.errors import HarnessError
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.toy.tiny_model import tiny_model
from lm_audit.stats import Estimate, tpr_at_fpr
from tests.audits.faults_and_guards import in_turns, put_once, remembered
from tests.audits.privacy.test_privacy_audit import scores_of
from tests.audits.reporting_faults import CHANCES, COUNTS, REPORTING, WIDTHS
from tests.present import present
from tests.report.browser.first_screen import clean, told

score_stage = stagescores.score_stage


SCORE = remembered(LanguageModel.loglikelihood)
GENERATE = remembered(LanguageModel.generate)


untouched = cache(tiny_model)
"""The model before training, read once for each seed: training copies it."""


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageModel, "loglikelihood", SCORE)
    monkeypatch.setattr(LanguageModel, "generate", GENERATE)
    monkeypatch.setattr("lm_audit.models.toy.tiny_model.tiny_model", untouched)
    put_once(monkeypatch, (membership, "pr_interval"))


SCORED: dict[tuple[object, ...], tuple[LanguageModel, StageScores]] = {}


def score_once(model: LanguageModel, stage: str, manifest: Manifest, *words: Any, **options: Any) -> StageScores:
    """The sound scores of a stage, made once for all faults that lie behind them."""
    reference = options.get("reference")
    key = (id(model), stage, manifest, repr(words), id(reference), repr(options.get("options")))
    if key not in SCORED:
        SCORED[key] = model, score_stage(model, stage, manifest, *words, **options)
    return SCORED[key][1]


@pytest.fixture
def scored_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stagescores, "score_stage", score_once)
    yield


@pytest.fixture(scope="module", autouse=True)
def scores_of_this_module() -> Iterator[None]:
    yield
    SCORED.clear()


@pytest.fixture(scope="session")
def memory() -> PlantedMemory:
    """The planted model, trained once for the table."""
    return trained_controls.planted_memory(0)


Scorer = Callable[..., list[TokenScores]]
Change = Callable[[list[TokenScores], np.random.Generator], list[TokenScores]]
Arrays = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Log-probabilities and ranks of one answer's tokens."""


def changed(change: Change) -> Scorer:
    """The scorer with its answers put through ``change(answers, rng)``."""

    def scorer(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
        return change(list(SCORE(self, requests, **options)), np.random.default_rng(1))

    return scorer


def each(change: Callable[[TokenScores, np.random.Generator], Arrays]) -> Scorer:
    """A fault of every answer's log-probabilities and ranks by itself."""

    def apply(answers: list[TokenScores], rng: np.random.Generator) -> list[TokenScores]:
        given = [(a, *change(a, rng)) for a in answers]
        return [replace(a, logprobs=logprobs, ranks=ranks) for a, logprobs, ranks in given]

    return changed(apply)


def among_equal_lengths(order: Callable[[NDArray[np.intp], np.random.Generator], NDArray[np.intp]]) -> Scorer:
    """Answers handed to other texts, whose token counts fit."""

    def apply(answers: list[TokenScores], rng: np.random.Generator) -> list[TokenScores]:
        found = list(answers)
        lengths = np.array([len(a.logprobs) for a in answers])
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            for place, source in zip(places, order(places, rng), strict=True):
                found[place] = answers[source]
        return found

    return changed(apply)


def without_prompt(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """Every token scored as if nothing stood before it."""
    answers = SCORE(self, requests, **options)
    tokens = sorted({int(t) for a in answers for t in a.token_ids})
    alone = {t: s for t, s in zip(tokens, SCORE(self, [((), (t,)) for t in tokens]), strict=True)}
    return [
        replace(
            a,
            logprobs=np.array([alone[int(t)].logprobs[0] for t in a.token_ids]),
            ranks=np.array([alone[int(t)].ranks[0] for t in a.token_ids]),
        )
        for a in answers
    ]


def without_bos(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """The first token is scored as by chance, the others as if no BOS stood before it."""
    answers = SCORE(self, requests, **options)
    bare = SCORE(self, requests, **options | {"bos": "none"})
    return [
        replace(a, logprobs=np.r_[np.full(len(a.logprobs) - len(b.logprobs), -5.0), b.logprobs])
        for a, b in zip(answers, bare, strict=True)
    ]


def of_another_model(self: LanguageModel, requests: Sequence[Any], **options: Any) -> list[TokenScores]:
    """A cache that forgot which model it is of."""
    found: list[TokenScores] = SCORE(untouched(0), requests, **options)
    return found


SCORER: dict[str, Scorer] = {
    "off by one token": each(lambda a, rng: (np.roll(a.logprobs, 1), np.roll(a.ranks, 1))),
    "texts swapped": among_equal_lengths(lambda places, rng: rng.permutation(places)),
    "constant": each(lambda a, rng: (np.full_like(a.logprobs, -1.0), np.zeros_like(a.ranks))),
    "sign reversed": each(lambda a, rng: (-a.logprobs, a.ranks.max() - a.ranks)),
    "noise": each(lambda a, rng: (-rng.exponential(3, len(a.logprobs)), rng.integers(0, 50, len(a.ranks)))),
    "all items identical": among_equal_lengths(lambda places, rng: np.full(len(places), places[0])),
    "prompt ignored": without_prompt,
    "BOS dropped": without_bos,
    "logarithms to the base 2": each(lambda a, rng: (a.logprobs / np.log(2), a.ranks)),
    "temperature of 2": each(lambda a, rng: (a.logprobs / 2 - 0.5, a.ranks)),
    "scores of another model": of_another_model,
    "padding scored": each(lambda a, rng: (np.r_[a.logprobs[:-1], -12.0], a.ranks)),
    "probabilities in the place of logarithms": each(lambda a, rng: (np.exp(a.logprobs), a.ranks)),
    "sum over tokens in the place of the mean": each(lambda a, rng: (a.logprobs * len(a.logprobs), a.ranks)),
}


def shuffled_labels(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(role=rng.permutation(table["role"]))


def leaked_label(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Members score higher because they are called members."""
    return table.assign(span_mean_logprob=table["span_mean_logprob"] + np.where(table["role"] == "member", 1.0, 0.0))


def constant_column(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(span_mean_logprob=-1.0)


def reversed_column(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(span_mean_logprob=-table["span_mean_logprob"])


def nothing_extracted(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(extracted_third=False)


def everything_extracted(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(extracted_third=True)


def half_of_the_twins_lost(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    twins = table[table["role"] == "control"]
    return pd.concat([table[table["role"] == "member"], twins.iloc[::2]], ignore_index=True)


def members_counted_twice(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return pd.concat([table, table[table["role"] == "member"]], ignore_index=True)


def scores_shifted_by_one(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Each canary gets the score of the one before."""
    return table.assign(span_mean_logprob=np.roll(table["span_mean_logprob"], 1))


def members_and_twins_exchanged(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(role=table["role"].map({"member": "control", "control": "member"}))


def names_turned_round(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(canary_id=list(table["canary_id"])[::-1])


TABLE: dict[str, Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]] = {
    "labels shuffled": shuffled_labels,
    "label leaks into the score": leaked_label,
    "metric constant": constant_column,
    "metric's sign reversed": reversed_column,
    "extraction never": nothing_extracted,
    "extraction always": everything_extracted,
    "half of the twins lost": half_of_the_twins_lost,
    "members counted twice": members_counted_twice,
    "scores shifted by one": scores_shifted_by_one,
    "members and twins exchanged": members_and_twins_exchanged,
    "names of canaries turned round": names_turned_round,
}


def _put(module: Any, name: str, fault: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """``fault(honest, ...)`` in place of a function, where its module uses it."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = getattr(module, name)
        patch.setattr(module, name, lambda *words, **options: fault(honest, *words, **options))

    return apply


def _moved(fault: Callable[[Estimate], Estimate]) -> Callable[..., Any]:
    """Fault of an estimate's own numbers."""
    return lambda honest, *words, **options: fault(honest(*words, **options))


def _stages_exchanged(honest: Callable[..., Any], *words: Any) -> tuple[Any, Any]:
    members, twins = honest(*words)
    return -members, -twins


def _spans_one_late(honest: Callable[..., Any], scored: Any, lowered: Any, spans: Any) -> Any:
    return honest(scored, lowered, [None if span is None else (span[0] - 1, span[1] - 1) for span in spans])


def _spread_of_a_sample(honest: Callable[..., Any], values: Any) -> Any:
    table = np.asarray(values, dtype=np.float64)
    return np.abs(table.std(axis=1, ddof=1) / table.mean(axis=1)).tolist()


def _twins_ignored(honest: Callable[..., Any], member: Any, twin: Any, **options: Any) -> Any:
    return honest(member, twin - twin.mean(), **options)


def _ratio_of_means(honest: Callable[..., Any], name: str, members: Any, documents: Any) -> Any:
    if name != "PPL_Ratio" or not len(documents):
        return honest(name, members, documents)
    return float(np.exp(documents["mean_logprob"].mean() - members["mean_logprob"].mean()))


def _narrow(estimate: Estimate) -> Estimate:
    value, low, high = present(estimate.value), estimate.low, estimate.high
    if low is None or high is None:
        return estimate
    return replace(estimate, low=value + (low - value) / 2, high=value + (high - value) / 2)


FIGURES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "stages exchanged": _put(changes, "changes_of", _stages_exchanged),
    "twins' change ignored": _put(changes, "studentised_difference", _twins_ignored),
    "interval of the step half as wide": _put(
        changes,
        "studentised_difference",
        lambda honest, *words, **options: replace(
            found := honest(*words, **options), difference=_narrow(found.difference)
        ),
    ),
    "p of the step always 1": _put(
        changes,
        "studentised_difference",
        lambda honest, *words, **options: replace(found := honest(*words, **options), p=replace(found.p, value=1.0)),
    ),
    "one more guess right": _put(
        statistics, "one_run_epsilon", lambda honest, m, r, v, delta: honest(m, r, max(0, v - 1), delta)
    ),
    "epsilon without a confidence": _put(
        statistics, "one_run_epsilon", lambda honest, m, r, v, delta: honest(m, r, v, delta, 0.5)
    ),
    "half of the canaries guessed": _put(
        statistics, "one_run_epsilon", lambda honest, m, r, v, delta: honest(m, 2 * r, 2 * v, delta)
    ),
    "instability by the spread of a sample": _put(stress, "instabilities", _spread_of_a_sample),
    "stability known beforehand misreported": _put(
        trained_controls, "wrong_of_known_stability", lambda honest: ["told"]
    ),
    "interval of the stability half as wide": _put(privacy_audit, "mean_interval", _moved(_narrow)),
    "calibrated by another canary": _put(
        stagescores,
        "calibrate",
        lambda honest, table, reference: honest(
            table, reference.assign(span_mean_logprob=np.roll(reference["span_mean_logprob"], 1))
        ),
    ),
    "calibrated the wrong way round": _put(
        stagescores,
        "calibrate",
        lambda honest, table, reference: honest(table, reference).assign(
            span_calibrated_logprob=lambda t: -t["span_calibrated_logprob"]
        ),
    ),
    "exposures ranked from the other end": _put(
        membership, "mean_exposure", lambda honest, members, twins: honest(-members, -twins)
    ),
    "perplexity of the mean in the place of its mean": _put(
        source_columns, "grouped_metric", lambda honest, name, *tables: _ratio_of_means(honest, name, *tables)
    ),
    "secrets one character late": _put(stagescores, "tabulate", _spans_one_late),
}
"""What the audit's own figures of a stage and a step can get wrong; *often-repeated* shows all of them."""

KNOWN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "secrets one token late": _put(scoring, "tabulate", _spans_one_late),
    "spread forgotten in Min-K%++": _put(scoring, "standardised", lambda honest, scores: scores.logprobs - scores.mean),
    "highest in the place of the lowest": _put(
        scoring, "lowest_mean", lambda honest, values, **o: float(np.sort(values)[-1])
    ),
    "a tenth in the place of a fifth": _put(scoring, "lowest_mean", lambda honest, values, **o: honest(values, 0.1)),
    "lower-cased text scored as it is": _put(scoring, "_ratio", lambda honest, mean, lowered: honest(mean, mean)),
}
"""What the scores of a text can get wrong; *known-scores* has them on paper."""

TRAINED = {"often-repeated", "never-trained"}
NOTICED_BY = {
    **{fault: {"known-scores", *TRAINED} for fault in SCORER},
    # The pretended members of the negative control are no members of the model that "another" is.
    **{fault: {"often-repeated"} for fault in FIGURES},
    **{fault: {"known-scores"} for fault in KNOWN},
    "members and twins exchanged": {"often-repeated"},
    "names of canaries turned round": {"often-repeated"},
    "scores of another model": TRAINED,
    "labels shuffled": {"often-repeated"},
    "label leaks into the score": {*TRAINED, "blind-baseline"},
    "metric constant": TRAINED,
    "metric's sign reversed": TRAINED,
    "extraction never": {"often-repeated"},
    "extraction always": {"often-repeated"},
    "half of the twins lost": {*TRAINED, "blind-baseline"},
    "members counted twice": {*TRAINED, "blind-baseline"},
    "scores shifted by one": TRAINED,
    "threshold turned round": TRAINED,
    **{fault: {*TRAINED, "blind-baseline"} for fault in (*WIDTHS, *CHANCES)},
    **{fault: {*TRAINED, "blind-baseline", "known-scores"} for fault in COUNTS},
}
"""Fault -> the controls that are its guards."""


ALIKE = {
    "all items identical",  # goes the way of "texts swapped", as do those below of what stands in brackets
    "logarithms to the base 2",  # (temperature of 2)
    "extraction always",  # (extraction never)
    "twins' change ignored",  # (interval of the step half as wide)
    "epsilon without a confidence",  # (one more guess right)
    "half of the canaries guessed",  # (one more guess right)
    "calibrated the wrong way round",  # (calibrated by another canary)
}
"""Faults planted in the place of another one, which is always tried: they are with ``-m slow``."""


def guarded(faults: Iterable[str]) -> list[pytest.ParameterSet]:
    """Each fault with each of its guards: one of them, in turns, always; the others with ``-m slow``."""
    return [
        pytest.param(fault, control, marks=[pytest.mark.slow] if fault in ALIKE else marks)
        for number, fault in enumerate(faults)
        for control, marks in in_turns(number, NOTICED_BY[fault])
    ]


def blind(memory: PlantedMemory) -> bool:
    """The base model's scores of members and twins, by the memory's unplanted canaries."""
    pretended = [replace(canary, role="member", repetitions=1) for canary in memory.pretended]
    manifest = Manifest((*pretended, *memory.twins), seed=0)
    return present(blind_evidence(trained_controls._scores(memory.model, manifest.canaries), manifest).control).passed


CONTROLS: dict[str, Callable[[PlantedMemory], bool]] = {
    "known-scores": lambda memory: present(known_scores(0).control).passed,
    "often-repeated": lambda memory: present(trained_controls.often_repeated(0).control).passed,
    "never-trained": lambda memory: present(trained_controls.never_trained(0).control).passed,
    "blind-baseline": blind,
}


def passes(control: str, memory: PlantedMemory) -> bool:
    """Whether a control passes; an error on the way, as of tables that do not fit each other, is noticed too."""
    try:
        return CONTROLS[control](memory)
    except HarnessError:
        return False


@pytest.mark.usefixtures("scored_once")
@pytest.mark.parametrize("control", CONTROLS)
def test_sound_controls_pass(memory: PlantedMemory, control: str) -> None:
    assert CONTROLS[control](memory)


@pytest.mark.parametrize(("fault", "control"), guarded(SCORER))
def test_faults_of_the_scorer_are_noticed(
    memory: PlantedMemory, monkeypatch: pytest.MonkeyPatch, fault: str, control: str
) -> None:
    monkeypatch.setattr(LanguageModel, "loglikelihood", SCORER[fault])
    assert not CONTROLS[control](memory)


@pytest.mark.parametrize(("fault", "control"), guarded(TABLE))
def test_faults_of_the_table_are_noticed(
    memory: PlantedMemory, monkeypatch: pytest.MonkeyPatch, fault: str, control: str
) -> None:
    def broken(*arguments: Any, **options: Any) -> StageScores:
        scores = score_once(*arguments, **options)
        return replace(scores, canaries=TABLE[fault](scores.canaries, np.random.default_rng(2)))

    monkeypatch.setattr(stagescores, "score_stage", broken)
    assert not passes(control, memory)


@pytest.mark.usefixtures("scored_once")
@pytest.mark.parametrize(("fault", "control"), guarded(REPORTING))
def test_faults_of_the_report_are_noticed(
    memory: PlantedMemory, monkeypatch: pytest.MonkeyPatch, fault: str, control: str
) -> None:
    REPORTING[fault](monkeypatch)
    assert not CONTROLS[control](memory)


@pytest.mark.parametrize(("fault", "control"), guarded(FIGURES | KNOWN))
def test_faults_of_the_figures_are_noticed(
    memory: PlantedMemory, monkeypatch: pytest.MonkeyPatch, fault: str, control: str
) -> None:
    (FIGURES | KNOWN)[fault](monkeypatch)
    assert not passes(control, memory)


@pytest.mark.usefixtures("scored_once")
@pytest.mark.parametrize("control", sorted(NOTICED_BY["threshold turned round"]))
def test_a_threshold_that_is_turned_round_is_noticed(
    memory: PlantedMemory, monkeypatch: pytest.MonkeyPatch, control: str
) -> None:
    """A member counts as told where it lies below the threshold of the lowest twins."""
    monkeypatch.setattr(membership, "tpr_at_fpr", lambda members, twins, fpr: tpr_at_fpr(-members, -twins, fpr))
    assert not CONTROLS[control](memory)


def test_every_fault_has_a_guard_and_every_control_guards() -> None:
    assert set(NOTICED_BY) == {*SCORER, *TABLE, *REPORTING, *FIGURES, *KNOWN, "threshold turned round"}
    assert set().union(*NOTICED_BY.values()) == set(CONTROLS)


@pytest.mark.slow
def test_the_known_model_is_a_formula_in_any_seed() -> None:
    assert all(present(known_scores(seed).control).passed for seed in range(1, 6))
    other = bigram_model(1).loglikelihood([("", "a text")])[0].logprobs
    assert not np.allclose(other, bigram_model(2).loglikelihood([("", "a text")])[0].logprobs)


@pytest.mark.parametrize("audits", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("members", "twins"), [(8, 200), (15, 200), (50, 1000), (200, 200)])
def test_blind_groups_pass_and_groups_that_are_apart_are_noticed(members: int, twins: int, audits: int) -> None:
    """At most one in a thousand sound audits is refused; the AUC that the control names is noticed in 99 of 100."""
    rng, refused, seen = np.random.default_rng(0), 0, 0
    shift = float(np.sqrt(2) * norm_quantile(noticed_auc(members, twins)))
    for _ in range(audits):
        refused += separation(rng.normal(size=members), rng.normal(size=twins)).shown
        seen += separation(rng.normal(shift, 1, members), rng.normal(size=twins)).shown
    # At one in a thousand, more than 2 of 100 or than 5 of 1,000 are refused about once in a thousand.
    assert refused <= {100: 2, 1000: 5}[audits]
    assert seen >= {100: 0.95, 1000: 0.985}[audits] * audits


def norm_quantile(share: float | None) -> np.float64:
    from scipy.special import ndtri

    return ndtri(present(share))


def test_an_auc_of_069_is_noticed_from_80_members_on() -> None:
    """The old rule refused a base model of true AUC 0.69 in 42% at 50 members and 1,000 twins. No rule that passes 999
    of 1,000 sound audits can refuse 99% there; it says so, and warns.
    """
    rng, shift = np.random.default_rng(1), float(np.sqrt(2) * norm_quantile(0.69))
    assert present(noticed_auc(50, 1000)) > 0.69 >= present(noticed_auc(80, 1000))
    found = [separation(rng.normal(shift, 1, 80), rng.normal(size=1000)).shown for _ in range(200)]
    assert np.mean(found) >= 0.985
    found = [
        blind_baseline(scores_of(rng.normal(shift, 1, 50), rng.normal(size=1000))).verdict != "ok" for _ in range(100)
    ]
    assert np.mean(found) >= 0.97


def test_too_few_canaries_are_no_control() -> None:
    found = blind_baseline(scores_of([1.0, 2.0, 3.0], [-3.0, -2.0, -1.0]))
    assert found.verdict == "refuse"
    assert "so few canaries cannot show any AUC" in found.reason


def test_equal_scores_pass_the_blind_baseline_and_no_positive_control() -> None:
    assert blind_baseline(scores_of(np.zeros(20), np.zeros(200))).verdict == "ok"


def test_memorised_secrets_are_said_to_be_and_others_are_not(memory: PlantedMemory, tmp_path: Path) -> None:
    """The whole way from canaries to the first screen, the terminal and summary.json."""
    options = stagescores.ScoringOptions(source_extraction=False, stress=False)
    pretended = [replace(canary, role="member", repetitions=1) for canary in memory.pretended[:40]]
    stages, reports = {"base": untouched(0), "sft": memory.model}, []
    for name, members in (("planted", memory.planted), ("clean", pretended)):
        manifest = Manifest((*members, *memory.twins[:60]), seed=0)
        found = evidence_of(score_stages(stages, manifest, [], device="cpu", options=options), manifest, options)
        slices = [stage_slice(found, "sft", family) for family in ("membership", "exposure", "extraction")]
        reports.append(told(tmp_path / name, *slices, transition_slice(found, "Base_to_SFT")))
    for statement in (
        "What the model after fine-tuning (sft) was trained on can be told from what it was not",
        "Secrets seen 16 times stand out in the model after fine-tuning (sft)",
        "Secrets can be read out of the model after fine-tuning (sft), third given",
        "The secrets entered the model in fine-tuning (Base_to_SFT)",
    ):
        assert reports[0].says(statement), statement
    clean(reports[1])


@pytest.fixture(scope="session")
def step(memory: PlantedMemory) -> list[StageScores]:
    """The planted model and the one before it, of each the scores."""
    before = trained_controls.score_before(memory)
    return [before, trained_controls.score_planted(memory, before)]


def _told(step: Sequence[StageScores]) -> list[str]:
    rows = [row for scores in step for row in privacy_audit.stage_rows(scores)]
    whole = Evidence("privacy", rows=rows, parameters={"seed": 0})
    privacy_audit.record_attribution(whole, 99)
    return trained_controls.wrong_changes(whole)


def test_members_that_all_change_alike_are_a_fault_and_no_crash() -> None:
    assert trained_controls._wrong_effects({"metric": "m"}, [0.0] * 8, [0.0] * 8) == ["m: all members changed by 0"]


def _turned(scores: Frames) -> Frames:
    """Members and twins exchanged."""
    return replace(scores, members=scores.twins, twins=scores.members)


_PAIRED, _AUC = changes._canary_row, changes._auc_row


def _known_effect(change: Callable[[dict[str, Any]], dict[str, Any]]) -> tuple[str, Any]:
    """A change of rows of canaries that have an effect."""

    def broken(*words: Any) -> dict[str, Any]:
        row = _PAIRED(*words)
        return row | change(row) if row.get("d_z") is not None else row

    return "_canary_row", broken


CHANGES: dict[str, tuple[str, Any]] = {
    "stages exchanged": ("_canary_row", lambda metric, column, a, b, options: _PAIRED(metric, column, b, a, options)),
    "stages exchanged for the AUC": ("_auc_row", lambda a, b, options: _AUC(b, a, options)),
    "members are the twins": ("_auc_row", lambda a, b, options: _AUC(_turned(a), _turned(b), options)),
    "another column": ("_canary_row", lambda metric, column, *rest: _PAIRED(metric, "sum_logprob", *rest)),
    "of the twins": (
        "_canary_row",
        lambda metric, column, a, b, options: _PAIRED(metric, column, _turned(a), _turned(b), options),
    ),
    "no more risk": ("_canary_row", lambda *words: _PAIRED(*words) | {"more_risk": False}),
    "d_z of the other sign": _known_effect(lambda row: {"d_z": -row["d_z"]}),
    "d_z over another spread": _known_effect(lambda row: {"d_z": row["d_av"]}),
    "effect of the members alone": _known_effect(lambda row: {"effect": row["d_z"]}),
    "against the twins, without them": _known_effect(lambda row: {"against_twins": row["delta"]}),
    "signs turned round": _known_effect(lambda row: {"positive": row["negative"], "negative": row["positive"]}),
    "changes of the other sign": (
        "_canary_row",
        lambda *words: (row := _PAIRED(*words)) | {"delta": -(row["delta"] or 0.0)},
    ),
}


@pytest.mark.parametrize("fault", CHANGES)
def test_the_table_of_changes_is_held(fault: str, step: Sequence[StageScores], monkeypatch: pytest.MonkeyPatch) -> None:
    assert _told(step) == []
    monkeypatch.setattr(changes, *CHANGES[fault])
    assert _told(step)
