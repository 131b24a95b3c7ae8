"""The hot paths, timed by pytest-benchmark: ``make benchmark``, and between two commits ``--benchmark-compare``.

    make benchmark ARGS=--benchmark-autosave          # at the one commit
    make benchmark ARGS=--benchmark-compare           # at the other; --benchmark-compare-fail=median:20% to fail on it

The toy model keeps matrix products small, so that what is timed is this package's own work around them.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from compare.scoring_lists import bias_grid, shared_contexts, unrelated_sentences

from lm_audit.audits.needle.grid.writing import grid_samples
from lm_audit.audits.needle.samples.config import NeedleConfig
from lm_audit.models import LanguageModel, load_model, load_tokenizer
from lm_audit.models.scoring.limits import Limits
from lm_audit.models.scoring.packs.packing import batches, plan
from lm_audit.models.scoring.packs.tree import distinct_requests, sorted_rows
from lm_audit.models.scoring.requests import RequestEncoder
from lm_audit.report import write_reports
from lm_audit.runstore import read_run
from lm_audit.runstore.ledger import Ledger
from tests.report.made_runs import MadeCase, chart, item_rows, share, write_run

pytestmark = pytest.mark.benchmark

LISTS = {"grid": bias_grid, "shared": shared_contexts, "unrelated": unrelated_sentences}
CPU = Limits(soft=64, hard=512, tokens=320, head_rows=128)


@pytest.fixture(scope="module")
def toy() -> LanguageModel:
    model = load_model("tiny", device="cpu", dtype="float32")
    model.loglikelihood([("a", " b")])  # the self-check comes with the first call
    return model


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return load_tokenizer("smollm2")


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    cases = [
        MadeCase(
            f"evals/test_bias.py::test_bias[smollm2@cpu-case-{k}]",
            "bias",
            metrics={f"bias.rate_{i}": share(0.2 + 0.6 * ((k * 7 + i) % 50) / 50) for i in range(8)},
            rows=item_rows(100, k),
            figures=[chart(k)],
        )
        for k in range(60)
    ]
    folder = tmp_path / "20260101-000000-0000"
    write_run(folder, cases)
    return folder


@pytest.mark.parametrize("name", ["grid", "unrelated"])
def test_scoring_a_list(benchmark: Any, toy: LanguageModel, name: str) -> None:
    requests = LISTS[name]()[:480]
    scores = benchmark(toy.loglikelihood, requests)
    assert len(scores) == len(requests)


@pytest.mark.parametrize("name", LISTS)
def test_tree_and_packs_of_a_list(benchmark: Any, tokenizer: Any, name: str) -> None:
    encoded = RequestEncoder(tokenizer).encode(LISTS[name](), "default")

    def pack() -> int:
        firsts, _ = distinct_requests(encoded)
        packs = plan(sorted_rows([encoded[i] for i in firsts]), CPU)
        return sum(1 for _ in batches(packs, CPU.tokens))

    assert benchmark(pack) > 1


def test_requests_to_tokens(benchmark: Any, tokenizer: Any) -> None:
    requests = bias_grid()
    assert len(benchmark(lambda: RequestEncoder(tokenizer).encode(requests, "default"))) == len(requests)


def test_writing_the_ledger(benchmark: Any, tmp_path: Path) -> None:
    folders = (tmp_path / str(k) for k in itertools.count())

    def write() -> int:
        folder = next(folders)
        folder.mkdir()
        ledger = Ledger(folder, "main")
        for k in range(500):
            ledger.write("note", case_id=f"evals/test_bias.py::test_bias[{k}]", attempt=1, text="a note of the case")
        ledger.close()
        return ledger.path.stat().st_size

    assert benchmark(write) > 50_000


def test_folding_a_run(benchmark: Any, run_folder: Path) -> None:
    assert len(benchmark(read_run, run_folder).cases) == 60


def test_writing_the_report(benchmark: Any, run_folder: Path) -> None:
    assert benchmark.pedantic(write_reports, (run_folder,), rounds=3, warmup_rounds=1).is_file()


def test_needle_prompts(benchmark: Any, tokenizer: Any) -> None:
    config = NeedleConfig(target_length=4096, length_interval=1024, num_positions=5, num_samples=2)
    found = benchmark(lambda: sum(1 for _ in grid_samples(config, tokenizer)))
    assert found == len(config.lengths) * 5 * 2
