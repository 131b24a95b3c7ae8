"""The leakage audit: has the model memorised a multiple-choice benchmark?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.audits.leakage.benchmark import Benchmark, cached_benchmark
from harness.audits.leakage.benchmarks import LIMITS, named_benchmarks
from harness.plugin import Case, RunOptions, cases

if TYPE_CHECKING:
    from harness.audits.leakage.memory import Memorisation
    from harness.models import LanguageModel
    from harness.plugin.recorder import Recorder

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "leakage"
SHIPPED = [FIXTURES / "general_en", FIXTURES / "general_zh"]

pytestmark = pytest.mark.leakage


def sources(options: RunOptions) -> dict[str, str]:
    """Names and places of the benchmarks."""
    return named_benchmarks(options.option("benchmark"), SHIPPED)


def read(source: str, options: RunOptions) -> Benchmark:
    """The benchmark, or the sample of it that the run's size asks for."""
    limit = options.option("leakage_limit") or LIMITS[options.size]
    return cached_benchmark(source, options.option("leakage_columns"), limit, options.seed)


def benchmark_cases(options: RunOptions) -> list[Case]:
    """One case a benchmark; what is wrong with a file is said before any model loads."""
    found = []
    for name, source in sources(options).items():
        read(source, options)
        found.append(Case(name, {"source": source}))
    return found


def has_template(case: Case, tokenizer: Any, options: RunOptions) -> None:
    """Template mode needs a chat template; a base model has none."""
    if options.option("leakage_mode") == "template" and not getattr(tokenizer, "chat_template", None):
        pytest.skip("the tokenizer has no chat template; use --leakage-mode raw")


@cases(benchmark_cases)
def test_published_memorisation(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """The published test as its source has it, original against shuffled, beside a baseline."""
    from harness.audits.leakage import published_memorisation

    benchmark = read(case.params["source"], run_options)
    result = published_memorisation(language_model, benchmark, seed=audit_seed, on_rows=evidence.rows)
    result.parameters["dtype"] = str(language_model.dtype)
    evidence.record(result)


@pytest.fixture(scope="session")
def measured_memorisation() -> Callable[..., Memorisation]:
    """Measures a benchmark's conditions once for its own case and for the table of all."""
    done: dict[Any, Memorisation] = {}

    def measure(model: LanguageModel, source: str, options: RunOptions, seed: int, recorder: Recorder) -> Memorisation:
        from harness.audits.leakage import chat_opening, measure_memorisation

        choices = {
            "orders": options.option("leakage_orders"),
            "cut": options.option("leakage_cut"),
            "opening": chat_opening(model.tokenizer) if options.option("leakage_mode") == "template" else "",
        }
        key = (model.fingerprint, str(model.device), str(model.dtype), source, seed, *choices.values())
        if key not in done:
            benchmark = read(source, options)
            done[key] = measure_memorisation(model, benchmark, seed=seed, on_rows=recorder.rows, **choices)
        return done[key]

    return measure


@cases(benchmark_cases, preflight=has_template)
def test_memorisation(
    case: Case,
    language_model: LanguageModel,
    evidence: Recorder,
    audit_seed: int,
    run_options: RunOptions,
    measured_memorisation: Callable[..., Memorisation],
) -> None:
    """Published order against shuffled ones, every score beside what language alone would give."""
    from harness.audits.leakage import memorisation_evidence

    result = measured_memorisation(language_model, case.params["source"], run_options, audit_seed, evidence)
    found = memorisation_evidence(result)
    found.parameters["dtype"] = str(language_model.dtype)
    evidence.record(found)
