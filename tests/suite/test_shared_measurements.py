"""Cases that show parts of one measurement record what they would alone."""

from __future__ import annotations

import csv
from pathlib import Path

from lm_audit.runstore.reader import read_rows
from tests.plugin.toy_audit import last_run
from tests.plugin.toy_run import REPOSITORY, run_pytest, write_project

TESTS = ("test_benchmark_overview", "test_memorisation")


def test_rows_are_recorded_where_another_case_has_measured(tmp_path: Path) -> None:
    write_project(tmp_path)
    with (tmp_path / "small.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "A", "B", "C", "D", "answer"])
        rows.writerows([f"What is {k} plus {k}?", 2 * k, k, 3 * k + 1, 4 * k + 2, "A"] for k in range(1, 9))
    where = ("-c", "pytest.ini", "--rootdir", str(tmp_path))
    named = [f"{REPOSITORY / 'evals' / 'test_leakage.py'}::{name}" for name in TESTS]
    done = run_pytest(tmp_path, *where, *named, "--model", "tiny", "--device", "cpu", "--benchmark", "small.csv")
    assert done.code == 0, done.output
    run = last_run(tmp_path)
    found = {case.case_id.partition("[")[0].rpartition("::")[2]: case.last for case in run.cases}
    assert set(found) == set(TESTS)
    own = list(read_rows(run.folder, found["test_memorisation"].row_files))
    assert len({row["item"] for row in own}) == len(own) == found["test_memorisation"].n_rows > 100
