"""The leakage audit: has the model memorised a multiple-choice benchmark?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.benchmarks import HEAVY_LIMITS, LIMITS, ROW_LIMITS, called, named_benchmarks
from lm_audit.audits.leakage.items.loading import cached_benchmark
from lm_audit.audits.leakage.items.sampling import Drawn
from lm_audit.models.capabilities import Capability
from lm_audit.plugin import Case, RunOptions, cases

if TYPE_CHECKING:
    from lm_audit.audits.leakage.measured_memory import Memorisation
    from lm_audit.audits.measured_once import MeasuredOnce
    from lm_audit.models import LanguageModel
    from lm_audit.plugin.record.evidence_fixture import Recorder

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "leakage"
SHIPPED = [FIXTURES / "general_en", FIXTURES / "general_zh"]

pytestmark = pytest.mark.leakage

FULL = (Capability.LOGLIKELIHOOD, Capability.NEXT_TOKEN)
"""Ranks, the likeliest token under a penalty, entropy: the whole distribution is read."""


def sources(options: RunOptions) -> dict[str, str]:
    """Names and places of the benchmarks."""
    return named_benchmarks(options.option("benchmark"), SHIPPED)


def read(source: str, options: RunOptions, *, heavy: bool = False, drawn: Drawn = "items") -> Benchmark:
    """The benchmark, or the sample that the run's size asks for; ``heavy`` tests take fewer of it at smoke size."""
    by_size = HEAVY_LIMITS if heavy else ROW_LIMITS if drawn == "pairs" else LIMITS
    limit = options.items(by_size[options.size], options.option("leakage_limit"))
    found = cached_benchmark(source, options.option("leakage_columns"), limit, options.seed, drawn)
    return called(found, source, options.option("benchmark"))


def benchmark_cases(options: RunOptions) -> list[Case]:
    """One case a benchmark; what is wrong with a file is said before any model loads."""
    asked_mode(options)
    found = []
    for name, source in sources(options).items():
        read(source, options)
        found.append(Case(name, {"source": source}))
    return found


def has_template(case: Case, tokenizer: Any, options: RunOptions) -> None:
    """Refuse ``--chat on`` for a tokenizer without a chat template, before weights load."""
    opening_of(tokenizer, options)


def asked_mode(options: RunOptions) -> Any:
    """What this audit's own option says of the chat template; refuses one that ``--chat`` contradicts."""
    own: Any = {"raw": "off", "template": "on"}.get(options.option("leakage_mode"))
    options.chat_mode(own, "--leakage-mode")
    return own


def opening_of(tokenizer: Any, options: RunOptions) -> str:
    """What stands before every probe: a chat template's text up to the answer, or nothing."""
    from lm_audit.audits.leakage import chat_opening

    if not options.in_template(tokenizer, default="off", own=asked_mode(options), flag="--leakage-mode"):
        return ""
    return chat_opening(tokenizer, chat_args=options.chat_args)


@cases(benchmark_cases, needs=FULL)
def test_published_memorisation(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """The published test as its source has it, original against shuffled, beside a baseline."""
    from lm_audit.audits.leakage import published_memorisation

    benchmark = read(case.params["source"], run_options)
    result = published_memorisation(language_model, benchmark, seed=audit_seed, on_rows=evidence.rows)
    result.parameters["dtype"] = str(language_model.dtype)
    evidence.record(result)


@pytest.fixture(scope="session")
def measured_memorisation(measured_once: MeasuredOnce) -> Callable[..., Memorisation]:
    """Measures a benchmark's conditions once for its own case and for the table of all."""

    def measure(
        model: LanguageModel, source: str, options: RunOptions, seed: int, recorder: Recorder | None
    ) -> Memorisation:
        from lm_audit.audits.leakage import measure_memorisation

        choices = {
            "orders": options.option("leakage_orders"),
            "cut": options.option("leakage_cut"),
            "opening": opening_of(model.tokenizer, options),
        }

        def measured() -> tuple[Memorisation, list[Mapping[str, Any]], Recorder | None]:
            rows: list[Mapping[str, Any]] = []

            def keep(some: Iterable[Mapping[str, Any]]) -> None:
                new = list(some)
                rows.extend(new)
                if recorder is not None:  # At once: what was measured is on disk, whatever happens.
                    recorder.rows(new)

            result = measure_memorisation(model, read(source, options), seed=seed, on_rows=keep, **choices)
            return result, rows, recorder

        result, rows, recorded_by = measured_once(model, ("memorisation", source, seed, *choices.values()), measured)
        if recorder is not None and recorder is not recorded_by:
            recorder.rows(rows)
        return result

    return measure


@cases(benchmark_cases, preflight=has_template, needs=FULL)
def test_memorisation(
    case: Case,
    language_model: LanguageModel,
    evidence: Recorder,
    audit_seed: int,
    run_options: RunOptions,
    measured_memorisation: Callable[..., Memorisation],
) -> None:
    """Published order against shuffled ones, every score beside what language alone would give."""
    from lm_audit.audits.leakage import memorisation_evidence

    result = measured_memorisation(language_model, case.params["source"], run_options, audit_seed, evidence)
    found = memorisation_evidence(result)
    found.parameters["dtype"] = str(language_model.dtype)
    evidence.record(found)


def overview_cases(options: RunOptions) -> list[Case]:
    """One case over all benchmarks."""
    count = len(benchmark_cases(options))
    return [Case("all-benchmarks", {"sources": sources(options)}, cost=float(count))]


@cases(overview_cases, preflight=has_template, needs=FULL)
def test_benchmark_overview(
    case: Case,
    language_model: LanguageModel,
    evidence: Recorder,
    audit_seed: int,
    run_options: RunOptions,
    measured_memorisation: Callable[..., Memorisation],
) -> None:
    """Original, shuffled and baseline of all benchmarks in one table, tests adjusted for their number."""
    from lm_audit.audits.leakage import overview_evidence

    places = case.params["sources"].values()
    results = [measured_memorisation(language_model, s, run_options, audit_seed, None) for s in places]
    evidence.record(overview_evidence(results, language_model.name))


@cases(benchmark_cases, needs=[Capability.LOGLIKELIHOOD])
def test_option_order(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """How likely is the published order of the options among all orders?"""
    from lm_audit.audits.leakage import option_order

    benchmark = read(case.params["source"], run_options, heavy=True)
    evidence.record(option_order(language_model, benchmark, seed=audit_seed, on_rows=evidence.rows))


@cases(benchmark_cases, preflight=has_template, needs=[Capability.CONTINUE])
def test_completion(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """Does the model write the second half of each option out, word for word?"""
    from lm_audit.audits.leakage import completions

    opening = opening_of(language_model.tokenizer, run_options)
    cut, benchmark = run_options.option("leakage_cut"), read(case.params["source"], run_options, heavy=True)
    evidence.record(
        completions(language_model, benchmark, cut=cut, opening=opening, seed=audit_seed, on_rows=evidence.rows)
    )


def text_cases(options: RunOptions) -> list[Case]:
    """One case a benchmark; the clean set is read here too, before any model loads."""
    for source in sources(options).values():
        clean_items(source, options)
    return benchmark_cases(options)


def clean_items(source: str, options: RunOptions) -> Benchmark | None:
    """The items of ``--leakage-clean`` that the benchmark does not ask; ``None`` where none are named."""
    named = options.option("leakage_clean")
    if named is None:
        return None
    from lm_audit.audits.leakage.items.clean import clean_of

    return clean_of(read(named, options), source, options.option("leakage_columns"))


@cases(text_cases, needs=FULL)
def test_text_likelihood(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """n-gram accuracy, perplexity and Min-K%, against clean items where ``--leakage-clean`` names some."""
    from lm_audit.audits.leakage import text_likelihood

    clean = clean_items(case.params["source"], run_options)
    benchmark = read(case.params["source"], run_options)
    evidence.record(text_likelihood(language_model, benchmark, clean=clean, seed=audit_seed, on_rows=evidence.rows))


def row_order_cases(options: RunOptions) -> list[Case]:
    """One case a benchmark; rows that are sorted have an order that proves nothing, and are skipped with the reason."""
    from lm_audit.audits.leakage.items.item import full_text
    from lm_audit.audits.leakage.orders.rows import sorted_reason

    found = []
    for name, source in sources(options).items():
        rows = [full_text(item) for item in read(source, options, drawn="pairs").items]
        found.append(Case(name, {"source": source}, skip=sorted_reason(rows)))
    return found


def row_texts(case: Case, tokenizer: Any, options: RunOptions) -> Iterator[tuple[str, str]]:
    """The rows whose order is tried, each with its place."""
    from lm_audit.audits.leakage.items.item import full_text

    items = read(case.params["source"], options, drawn="pairs").items
    return ((f"row {item.id} of {item.file}", full_text(item)) for item in items)


@cases(row_order_cases, preflight=row_texts, needs=[Capability.LOGLIKELIHOOD])
def test_row_order(
    case: Case, language_model: LanguageModel, evidence: Recorder, audit_seed: int, run_options: RunOptions
) -> None:
    """Is a row likelier after its neighbour than before it, and the file than with its rows shuffled?"""
    from lm_audit.audits.leakage import row_order

    effort = {"smoke": {"shards": 3, "permutations": 1}}.get(run_options.size, {"shards": 10, "permutations": 25})
    benchmark = read(case.params["source"], run_options, drawn="pairs")
    evidence.record(row_order(language_model, benchmark, seed=audit_seed, **effort))


@pytest.mark.control
@cases(
    [
        Case("seen-in-training", {"judge": "positive_control"}, control="positive", model="tiny"),
        Case("never-seen", {"judge": "negative_control"}, control="negative", model="tiny"),
    ]
)
def test_memorisation_control(
    case: Case,
    language_model: LanguageModel,
    evidence: Recorder,
    audit_seed: int,
    measured_once: MeasuredOnce,
) -> None:
    """Questions the toy model was trained on must be found by every test; others of the kind by none."""
    from lm_audit.audits import leakage

    judge = getattr(leakage, case.params["judge"])
    what = ("planted", audit_seed)  # One training serves both controls.
    planted = measured_once(language_model, what, lambda: leakage.plant(language_model, seed=audit_seed))
    evidence.record(judge(planted))
