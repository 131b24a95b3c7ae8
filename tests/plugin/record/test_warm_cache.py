"""Evidence from a cache never outlives its code: what is changed in the source shows in the case, cache or no cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.plugin.record.test_code_version import copied_package
from tests.plugin.toy_audit import last_run
from tests.plugin.toy_run import CONFTEST, REPOSITORY, run_fresh, write_project

SMALL = """
from pathlib import Path
from lm_audit.audits.privacy import measured_cases as evalcases
from lm_audit.audits.privacy.stages.config import smoke_config

STAGES = Path(__file__).parent / "stages"
evalcases.toy_config = lambda options, seed=None: smoke_config(output=STAGES, device="cpu")
"""


@pytest.mark.slow
def test_an_exception_put_first_fails_the_privacy_case_although_its_evidence_is_cached(tmp_path: Path) -> None:
    """The shipped case, on stages that stay where they are: nothing but the audit's own code changes."""
    source = copied_package(tmp_path)
    write_project(tmp_path)
    (tmp_path / "conftest.py").write_text(CONFTEST + SMALL)
    shutil.copy(REPOSITORY / "evals" / "test_privacy.py", tmp_path)
    membership = source / "lm_audit" / "audits" / "privacy" / "measure" / "membership.py"
    sound = membership.read_text()
    head, body = sound.split('AUC of the others."""\n    members', 1)

    def ran(text: str = sound) -> tuple[dict[str, int], str, dict[Path, int]]:
        membership.write_text(text)
        done = run_fresh(tmp_path, "-k", "test_stage and sft-membership", PYTHONPATH=str(source), timeout=400)
        kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "stages").glob("evidence-*.json")}
        return done.counts, done.output, kept

    def auc() -> float | None:
        return last_run(tmp_path).cases[0].last.metrics["privacy.roc_auc"].value

    counts, _, cold = ran()
    known = auc()
    assert counts["passed"] == 1 and len(cold) == 1 and known is not None
    counts, _, warm = ran()
    assert counts["passed"] == 1 and warm == cold and auc() == known
    counts, output, kept = ran(f'{head}AUC of the others."""\n    raise RuntimeError("put first")\n    members{body}')
    assert counts["failed"] == 1 and "put first" in output and kept == cold
    # Any change, not only one that raises: here the groups change places.
    counts, _, kept = ran(sound.replace("    members, twins = sides(", "    twins, members = sides(", 1))
    assert counts["passed"] == 1 and len(kept) == 2 and auc() == pytest.approx(1 - known)
    counts, _, kept = ran()
    assert counts["passed"] == 1 and len(kept) == 2 and auc() == known
