"""``make benchmark`` times something: its cases are found."""

from __future__ import annotations

from tests.plugin.toy_run import REPOSITORY, run_pytest


def test_the_cases_of_make_benchmark_are_found() -> None:
    asked = ("-m", "benchmark", "-q", "--collect-only", "-p", "no:cacheprovider")
    listed = run_pytest(REPOSITORY, "benchmarks", *asked, plugins=("benchmark",))
    assert listed.code == 0, listed.output
    for name in ("scoring_a_list[grid]", "tree_and_packs", "writing_the_ledger", "folding", "the_report", "needle"):
        assert name in listed.output
