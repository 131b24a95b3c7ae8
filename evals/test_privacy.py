"""Privacy: planted canaries, four training stages, and which of them leaked.

Without ``--stages`` the toy model is trained (about a minute, once); with ``--stages base=SPEC,sft=SPEC,...`` and
``--manifest FILE`` checkpoints that somebody else trained are audited.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.audits.hub_rows import hub_set
from lm_audit.audits.privacy import measured_cases as evalcases
from lm_audit.audits.privacy.data.documents import read_documents
from lm_audit.audits.privacy.data.manifest import read_manifest
from lm_audit.audits.privacy.stages.stage_option import manifest_path
from lm_audit.errors import UsageError
from lm_audit.models.capabilities import Capability
from lm_audit.plugin import Case, RunOptions, cases
from lm_audit.shared.textfiles import is_there, on_disk

if TYPE_CHECKING:
    from lm_audit.audits.measured_once import MeasuredOnce
    from lm_audit.audits.privacy.data.manifest import Manifest
    from lm_audit.audits.privacy.measure.membership_scored import MemberText
    from lm_audit.models import LanguageModel
    from lm_audit.plugin.record.evidence_fixture import Recorder

pytestmark = pytest.mark.privacy


def stage_cases(options: RunOptions) -> list[Case]:
    """Stage x family of metrics."""
    return [
        Case(
            f"{stage}-{family}",
            {"stage": stage, "family": family},
            cost=60.0 if stage == "base" else 1.0,
            toy=evalcases.chosen_stages(options) is None,
        )
        for stage in evalcases.stage_names(options)
        for family in evalcases.METRIC_FAMILIES
    ]


def transition_cases(options: RunOptions) -> list[Case]:
    """One case a transition between stages."""
    toy = evalcases.chosen_stages(options) is None
    return [Case(name, {"transition": name}, toy=toy) for name in evalcases.transition_names(options)]


def blind_cases(options: RunOptions) -> list[Case]:
    """The untouched base model."""
    return [Case("blind-baseline", control="negative")]


def larger_cases(options: RunOptions, ids: list[str]) -> list[Case]:
    """Cases that train several times: at sizes standard and full, on the toy model."""
    skip = "needs --size standard or full (trains the toy model several times)" if options.size == "smoke" else None
    skip = "trains the toy model; not with --stages" if evalcases.chosen_stages(options) else skip
    return [Case(name, {"name": name}, skip=skip, marks=("slow",), cost=120.0, toy=True) for name in ids]


@cases(stage_cases)
def test_stage(case: Case, evidence: Recorder, run_options: RunOptions, measured_once: MeasuredOnce) -> None:
    """The metrics of one family at one stage."""
    found = evalcases.run_evidence(run_options, measured_once)
    evidence.record(evalcases.stage_slice(found, case.params["stage"], case.params["family"]))


@cases(transition_cases)
def test_transition(case: Case, evidence: Recorder, run_options: RunOptions, measured_once: MeasuredOnce) -> None:
    """What one transition changed: difference in differences first, then every metric with interval and decision."""
    found = evalcases.run_evidence(run_options, measured_once)
    if found.control is not None and not found.control.passed:
        pytest.skip(f"no transition is judged: {found.control.observed}")
    evidence.record(evalcases.transition_slice(found, case.params["transition"]))


@cases(blind_cases)
def test_blind_baseline(case: Case, evidence: Recorder, run_options: RunOptions, measured_once: MeasuredOnce) -> None:
    """The base model must not tell members from held-out twins."""
    evidence.record(evalcases.blind_slice(evalcases.run_evidence(run_options, measured_once)))


def canary_lengths(case: Case, tokenizer: Any, options: RunOptions) -> Iterator[tuple[str, int | str]]:
    """The same of canaries."""
    return lengths(case, tokenizer, options)


def extraction_cases(options: RunOptions) -> list[Case]:
    """One case for the manifest that ``--extraction-manifest`` names; what is wrong with it is said here."""
    named = options.option("extraction_manifest")
    if named is None:
        return [Case("manifest", skip="needs --extraction-manifest FILE, the canaries that the model may have seen")]
    manifest = read_manifest(manifest_path(named, "--extraction-manifest"))
    return [Case("manifest", {"manifest": manifest, "file": named}, cost=5.0)]


@cases(extraction_cases, preflight=canary_lengths, needs=[Capability.CONTINUE])
def test_generated_extraction(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """Does the model write out the secrets of a manifest, greedily or in samples, more often than their twins?"""
    from lm_audit.audits.privacy.measure.extraction_generated import generated_extraction

    samples = {"smoke": 4, "standard": 16, "full": 64}[run_options.size]
    manifest = given_canaries(case, run_options, audit_seed)
    evidence.record(generated_extraction(language_model, manifest, samples=samples, seed=audit_seed))


def given_canaries(case: Case, options: RunOptions, seed: int) -> Manifest:
    """The case's canaries, so many members and twins as ``--limit`` leaves."""
    from lm_audit.audits.privacy.data.limiting import limited

    return limited(case.params["manifest"], evalcases.canary_limit(options.items(None)), seed=seed)


MEMBER_TEXTS = {"smoke": 40, "standard": 200, "full": None}
"""Texts a side, of those that --member-texts and --held-out-texts name."""


def membership_cases(options: RunOptions) -> list[Case]:
    """The canaries of --extraction-manifest, and the texts of --member-texts; what is wrong with them is said here."""
    members, held_out = options.option("member_texts"), options.option("held_out_texts")
    if (members is None) != (held_out is None):
        raise UsageError("--member-texts and --held-out-texts go together: one says nothing without the other")
    found = []
    if (named := options.option("extraction_manifest")) is not None:
        manifest = read_manifest(manifest_path(named, "--extraction-manifest"))
        found.append(Case("manifest", {"manifest": manifest, "file": named}, cost=3.0))
    if members is not None:
        for option, where in (("--member-texts", members), ("--held-out-texts", held_out)):
            if not is_there(on_disk(where).path) and hub_set(where) is None:
                raise UsageError(f"{option} {where[:200]}: there is no such file or folder, and it is no hub id")
            read_documents(where)
        check_sides(members, held_out, options.seed)
        found.append(Case("texts", {"members": members, "held_out": held_out}, cost=3.0))
    reason = "needs --extraction-manifest FILE, or --member-texts FILE and --held-out-texts FILE"
    return found or [Case("texts", skip=reason)]


def check_sides(members: str, held_out: str, seed: int) -> None:
    """Refuse texts that stand on both sides, and too few of them, before any model loads."""
    from lm_audit.audits.privacy.measure.membership_scored import refuse_few, texts_of_files

    refuse_few(texts_of_files(members, held_out, limit=None, seed=seed), f"{members} and {held_out}")


def lengths(case: Case, tokenizer: Any, options: RunOptions) -> Iterator[tuple[str, int | str]]:
    """The tokens that the model reads of each text; a book as it is."""
    from lm_audit.models.scoring.requests import RequestEncoder

    texts = given_texts(case, options, options.seed)
    names = {one.text: f"text {one.item}, which begins {one.text[:60]!r}," for one in texts}
    yield from ((name, text) for text, name in names.items() if len(text) > BOOK)
    shorter = [text for text in names if len(text) <= BOOK]
    encoded = RequestEncoder(tokenizer).encode([("", text) for text in shorter], "default")
    yield from ((names[text], of.inputs) for text, of in zip(shorter, encoded, strict=True))


BOOK = 10**6
"""Characters from which on a text is not encoded whole before it is known to fit."""


@cases(membership_cases, preflight=lengths, needs=[Capability.LOGLIKELIHOOD])
def test_membership_scores(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """Are texts that were trained on likelier than others of their kind? By log-probabilities alone."""
    from lm_audit.audits.privacy.measure.membership_scored import scored_membership

    evidence.record(scored_membership(language_model, given_texts(case, run_options, audit_seed), seed=audit_seed))


def given_texts(case: Case, options: RunOptions, seed: int) -> list[MemberText]:
    """The case's texts of both sides, so many as ``--limit`` or the size leaves."""
    from lm_audit.audits.privacy.measure.membership_scored import texts_of, texts_of_files

    if "manifest" in case.params:
        return texts_of(given_canaries(case, options, seed))
    most = evalcases.canary_limit(options.items(MEMBER_TEXTS[options.size]))
    return texts_of_files(case.params["members"], case.params["held_out"], limit=most, seed=seed)


@cases(
    [
        Case("often-repeated", control="positive", cost=5.0),
        Case("known-scores", control="positive"),
        Case("known-training", control="positive", cost=3.0),
    ]
)
def test_positive_control(case: Case, evidence: Recorder, audit_seed: int) -> None:
    """A model that memorised its canaries gives them away; a model that is known on paper scores as the paper says, and
    one that is trained twice by different code learns the same.
    """
    if case.id == "known-scores":
        from lm_audit.audits.privacy.controls.known_scores import known_scores as planted
    elif case.id == "known-training":
        from lm_audit.audits.privacy.controls.known_training import known_training as planted
    else:
        from lm_audit.audits.privacy.controls.trained_controls import often_repeated as planted
    evidence.record(planted(audit_seed))


@cases([Case("never-trained", control="negative", cost=5.0)])
def test_negative_control(case: Case, evidence: Recorder, audit_seed: int) -> None:
    """Where no canary was trained on, members and twins look alike."""
    from lm_audit.audits.privacy.controls.trained_controls import never_trained

    evidence.record(never_trained(audit_seed))


@cases(lambda options: larger_cases(options, [f"{evalcases.SEEDS}-seeds"]))
def test_seeds(case: Case, evidence: Recorder, run_options: RunOptions) -> None:
    """The primary figure over several seeds: mean, spread and agreement in direction."""
    from lm_audit.audits.privacy.stages.seeds import combine_seeds
    from lm_audit.audits.privacy.stages.stage_names import PRIMARY_TRANSITION

    options = evalcases.scoring_options(run_options)
    found = {
        seed: evalcases.toy_evidence(evalcases.toy_config(run_options, seed), options)
        for seed in range(run_options.seed, run_options.seed + evalcases.SEEDS)
    }
    evidence.record(combine_seeds(found, f"privacy.{PRIMARY_TRANSITION}.did"))


@cases(lambda options: larger_cases(options, [f"epsilon-{epsilon}" for epsilon in evalcases.EPSILONS]))
def test_dp_sft(case: Case, evidence: Recorder, run_options: RunOptions) -> None:
    """SFT with DP-SGD: the same canaries, less memory of them the smaller epsilon is."""
    from dataclasses import replace

    from lm_audit.audits.privacy.stages.config import DpSettings

    epsilon = float(case.params["name"].removeprefix("epsilon-"))
    config = replace(evalcases.toy_config(run_options), dp=DpSettings(epsilon))
    found = evalcases.toy_evidence(config, evalcases.scoring_options(run_options))
    evidence.parameter("epsilon", case.params["name"])
    for part in evalcases.stage_slices(found, "sft", ("membership", "exposure", "extraction")):
        part.parameters = {}
        part.figures, part.headline = [], "privacy.roc_auc"
        evidence.record(part)
