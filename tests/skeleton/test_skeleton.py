"""The skeleton audit of docs/adding-an-audit.md runs, is recorded, and its control holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lm_audit.runstore import read_run

ROOT = Path(__file__).resolve().parents[2]


def test_the_documented_skeleton_runs_as_an_audit(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/skeleton/skeleton_eval.py"]
    options = ["--model", "tiny", "--device", "cpu", "--reports", str(tmp_path)]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    run = read_run(next(path for path in tmp_path.iterdir() if path.is_dir()))
    by_name = {case.case_id.partition("::")[2]: case.last for case in run.cases}
    plain, control = by_name["test_repetition[tiny@cpu-plain]"], by_name["test_control[tiny@cpu-repeating-model]"]
    assert plain.metrics["skeleton.repetition_rate"].n == 6
    assert control.control is not None and control.control.passed


def test_the_page_shows_what_lies_there() -> None:
    page = (ROOT / "docs" / "adding-an-audit.md").read_text(encoding="utf-8")
    audit = (ROOT / "tests" / "skeleton" / "skeleton_audit.py").read_text(encoding="utf-8")
    for line in ("requests = [(sentence, f", 'Evidence("skeleton", headline="skeleton.repetition_rate")'):
        assert line in page and line in audit
