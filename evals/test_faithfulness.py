"""The faithfulness audit: attribution methods on needle, multi-hop and own samples, compared and controlled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.audits.drawing import drawn
from lm_audit.audits.faithfulness.methods.method_options import METHODS, READS
from lm_audit.audits.faithfulness.passage.samples import Sample, generated_samples, load_words
from lm_audit.audits.faithfulness.passage.user_samples import read_samples
from lm_audit.audits.given.given_rows import legal_name
from lm_audit.errors import DataError, UsageError
from lm_audit.models.capabilities import Capability
from lm_audit.plugin import Case, RunOptions, cases
from lm_audit.shared.number_checks import check_choice
from lm_audit.shared.textfiles import is_there

if TYPE_CHECKING:
    from lm_audit.audits.faithfulness.audit import Settings
    from lm_audit.audits.faithfulness.study import Study
    from lm_audit.audits.measured_once import MeasuredOnce
    from lm_audit.models import LanguageModel
    from lm_audit.plugin.record.evidence_fixture import Recorder

    Studies = tuple[list[Study], list[str]]

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "faithfulness"

pytestmark = pytest.mark.faithfulness

WEIGHTS = (Capability.GRADIENTS, Capability.HIDDEN_STATES)

SMOKE = ("flashtrace", "ifr", "attnlrp", "attention", "ablation")
STANDARD = (
    *SMOKE,
    "input_x_gradient",
    "ft_ifr",
    "ft_attnlrp",
    "integrated_gradients",
    "rollout",
    "ablation_clp",
    "leave_one_out",
)
COUNTS = {"smoke": 1, "standard": 12, "full": 50}
"""Samples of a kind. An interval takes eight: at smoke size a second one would tell nothing that the first does not."""
STEPS = {"smoke": 4, "standard": 20, "full": 20}
UNITS = ("token", "sentence")


def methods_of(options: RunOptions) -> tuple[str, ...]:
    """The methods that the user named, or those of the size."""
    named = tuple(options.option("attribution_method") or ())
    for method in named:
        check_choice("--attribution-method", method, METHODS)
        if named.count(method) > 1:
            raise UsageError(f"--attribution-method {method} is given twice; its cases would have one id")
    chosen = named or (SMOKE if options.size == "smoke" else STANDARD)
    hops = options.option("attribution_hops")
    if hops != 1 and not any("hops" in READS[method] for method in chosen):
        raise UsageError(f"--attribution-hops {hops} does nothing: none of {', '.join(chosen)} goes by hops")
    return chosen


def sample_sets(options: RunOptions) -> dict[str, tuple[Sample, ...]]:
    """The generated samples and the user's own, by the name that their cases bear."""
    asked_mode(options)
    words = load_words(FIXTURES / "samples.toml")
    sets = {
        kind: tuple(generated_samples(kind, words, options.items(COUNTS[options.size]) or 0, options.seed))
        for kind in ("needle", "hops")
    }
    for path in options.option("faithfulness_samples") or ():
        # Of a part of a set its configuration and split belong to the name.
        name = Path(path).stem.replace(" ", "_") if is_there(Path(path)) else legal_name(path.split("/")[-1])
        if name in sets:
            raise UsageError(f"--faithfulness-samples {path}: a set is already called {name!r}; rename the file")
        sets[name] = tuple(drawn(read_samples(path), options.items(None), seed=options.seed))
    return sets


def method_cases(options: RunOptions) -> list[Case]:
    """Samples x methods x granularity."""
    return [
        Case(f"{name}-{method}-{unit}", {"samples": samples, "method": method, "unit": unit}, cost=len(samples))
        for name, samples in sample_sets(options).items()
        for method in methods_of(options)
        for unit in UNITS
    ]


def comparison_cases(options: RunOptions) -> list[Case]:
    """One comparison of all methods a sample set and granularity."""
    return [
        Case(f"{name}-{unit}", {"samples": samples, "unit": unit}, cost=2.0 * len(samples))
        for name, samples in sample_sets(options).items()
        for unit in UNITS
    ]


def asked_mode(options: RunOptions) -> Any:
    """What this audit's own option says of the chat template; refuses one that ``--chat`` contradicts."""
    own: Any = "on" if options.option("faithfulness_chat") else None
    options.chat_mode(own, "--faithfulness-chat")
    return own


def in_chat(tokenizer: Any, options: RunOptions) -> bool:
    """Whether prompts go into the chat template."""
    return options.in_template(tokenizer, default="off", own=asked_mode(options), flag="--faithfulness-chat")


def round_trips(case: Case, tokenizer: Any, options: RunOptions) -> list[tuple[str, int]]:
    """Refuse prompts and generations that this tokenizer cannot give back, before weights load; their tokens."""
    from lm_audit.audits.faithfulness.passage.tokens import encode_passage

    read = []
    for sample in case.params["samples"]:
        try:
            passage = encode_passage(
                tokenizer,
                sample.prompt,
                sample.generation or "x",
                chat=in_chat(tokenizer, options),
                chat_args=options.chat_args,
            )
        except DataError as error:
            raise DataError(f"sample {sample.name}: {error}") from None
        read.append((f"sample {sample.name}, its prompt with its generation,", len(passage.ids)))
    return read


@pytest.fixture(scope="session")
def studied(measured_once: MeasuredOnce) -> Callable[[LanguageModel, tuple[Sample, ...], bool], Studies]:
    """Prepares samples once a model, so that all cases share forward passes, attributions and deletion states."""

    def study(model: LanguageModel, samples: tuple[Sample, ...], chat: bool) -> Studies:
        from lm_audit.audits.faithfulness.study import prepare_all

        return measured_once(model, ("studies", samples, chat), lambda: prepare_all(model, samples, chat=chat))

    return study


def settings_of(case: Case, options: RunOptions) -> Settings:
    """How this case scores its methods."""
    from lm_audit.audits.faithfulness.audit import Settings

    asked = options.option("deletion_steps")
    steps = STEPS[options.size] if asked is None else asked or None
    return Settings(
        unit=case.params["unit"],
        steps=steps,
        baseline=options.option("deletion_baseline"),
        hops=options.option("attribution_hops"),
        seed=options.seed,
    )


@cases(method_cases, preflight=round_trips, needs=WEIGHTS)
def test_method(
    case: Case, language_model: LanguageModel, evidence: Recorder, run_options: RunOptions, studied: Any
) -> None:
    """One method on one sample set: scores, references, heatmap, deletion curve."""
    from lm_audit.audits.faithfulness.audit import method_evidence

    studies, notes = studied(language_model, case.params["samples"], in_chat(language_model.tokenizer, run_options))
    found = method_evidence(studies, case.params["method"], settings_of(case, run_options))
    found.notes += notes
    evidence.record(found)


@cases(comparison_cases, preflight=round_trips, needs=WEIGHTS)
def test_comparison(
    case: Case, language_model: LanguageModel, evidence: Recorder, run_options: RunOptions, studied: Any
) -> None:
    """All methods on one sample set: ranking, agreement, what sentences hide, the price of approximation."""
    from lm_audit.audits.faithfulness.audit import comparison_evidence

    studies, notes = studied(language_model, case.params["samples"], in_chat(language_model.tokenizer, run_options))
    found = comparison_evidence(studies, methods_of(run_options), settings_of(case, run_options))
    found.notes += notes
    evidence.record(found)


def planted(model: LanguageModel, seed: int) -> tuple[LanguageModel, tuple[Sample, ...]]:
    """The model that copies by construction, where ``model`` lies, and the samples on which it does."""
    from lm_audit.audits.faithfulness.controls.copier import copier, copy_samples
    from lm_audit.audits.faithfulness.controls.known_sources import SAMPLES

    return copier(seed, model.device), copy_samples(SAMPLES, seed)


@pytest.mark.control
@cases([Case("planted-span", {}, control="positive", model="tiny")])
def test_planted_span(case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int) -> None:
    """A model built to copy marked letters: every method must find them."""
    from lm_audit.audits.faithfulness.controls.known_sources import planted_span_evidence

    evidence.record(planted_span_evidence(*planted(language_model, audit_seed), seed=audit_seed))


@pytest.mark.control
@cases([Case("randomised-weights", {}, control="negative", model="tiny")])
def test_randomised_weights(case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int) -> None:
    """The same model with its weights drawn anew: the attribution must not keep its ranking."""
    from lm_audit.audits.faithfulness.controls.known_sources import randomised_weights_evidence

    evidence.record(randomised_weights_evidence(*planted(language_model, audit_seed), seed=audit_seed))


@pytest.mark.control
@cases([Case("random-attribution", {}, control="negative", model="tiny")])
def test_random_attribution(case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int) -> None:
    """Random numbers as an attribution: no better than random orders, by scores that tell good orders from bad ones."""
    from lm_audit.audits.faithfulness.controls.deletion_control import random_attribution_evidence

    evidence.record(random_attribution_evidence(*planted(language_model, audit_seed), seed=audit_seed))
