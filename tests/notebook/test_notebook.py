"""In a notebook: what objects show, data frames, a report without pytest, and the documented notebook itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from lm_audit import Control, Estimate, Evidence, Figure, StoreError, UsageError, read_run
from lm_audit.findings import claim
from lm_audit.gates.gate import Gate
from lm_audit.report import report
from lm_audit.report.comparison.runs import compare_runs
from tests.present import present

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script>\u202e"


def evidence() -> Evidence:
    """Evidence with everything in it, and hostile text wherever a model could have written it."""
    made = Evidence("bias", notes=[HOSTILE])
    made.metric("bias.share", Estimate(0.71, 0.63, 0.79, 120, unit="share", chance=0.5))
    made.metric("bias.thin", Estimate.not_estimable(HOSTILE, n=1))
    made.headline = "bias.share"
    made.extend_rows({"item": f"i{k}", "text": HOSTILE, "score": k / 10} for k in range(500))
    made.figures.append(Figure("f", HOSTILE, "table", {"columns": [{"name": "a"}], "rows": [{"a": HOSTILE}]}))
    made.finding(
        claim("prefers", made.metrics["bias.share"], found=f"It prefers {HOSTILE}", absent="No", unknown="Whether",
              metric="bias.share")
    )  # fmt: skip
    return made


def test_objects_are_short_and_their_html_is_harmless() -> None:
    made = evidence()
    shown = [made, made.metrics["bias.share"], made.figures[0], made.findings[0]]
    assert all(len(repr(one)) < 200 and "\n" not in repr(one) and "\u202e" not in repr(one) for one in shown)
    assert repr(made) == "<Evidence bias: 1 found, 2 metrics, 500 rows, 1 figures, bias.share = 0.71 [0.63, 0.79]>"
    assert eval(repr(made.metrics["bias.share"])) == made.metrics["bias.share"]
    pages = [made._repr_html_(), made.metrics["bias.share"]._repr_html_(), made.findings[0]._repr_html_()]
    pages.append(made.figures[0]._repr_mimebundle_()["text/html"])
    for page in pages:
        assert "<script" not in page and "\u202e" not in page
    assert "0.71" in pages[0] and "[0.63, 0.79]" in pages[0] and "It prefers &lt;script&gt;" in pages[0]
    assert "<iframe sandbox srcdoc=" in pages[3]


def test_frames_hold_metrics_items_and_findings() -> None:
    made = evidence()
    metrics = made.to_frame()
    assert list(metrics.index) == ["bias.share", "bias.thin"] and metrics.loc["bias.share", "low"] == 0.63
    assert len(made.to_frame("items")) == 500 and made.to_frame("findings").iloc[0]["verdict"] == "found"
    with pytest.raises(ValueError, match="'metrics', 'items' or 'findings', got 'rows'"):
        made.to_frame("rows")  # type: ignore[arg-type]


def test_a_report_without_pytest_is_a_run_like_any_other(tmp_path: Path) -> None:
    control = Evidence("bias", control=Control("positive", True, "AUC above 0.9", "0.97"))
    gates = [Gate("bias.share", float("-inf"), 0.6)]
    page = report({"our words": evidence(), "control": control}, tmp_path / "run", model="mine", gates=gates)
    assert page.read_text().count("It prefers") and (page.parent / "items.parquet").is_file()
    run = read_run(page.parent)
    assert [case.outcome for case in run.cases] == ["failed", "passed"] and run.finished and not run.missing
    assert run.cases[0].verdicts[0].word == "missed"
    assert run.cases[0].device is None and ">mine</small>" in page.read_text(), "nobody said on what it ran"
    assert len(run.items) == 500 and run.items["case"].iloc[0] == "our words"
    assert set(run.metrics["metric"]) == {"bias.share", "bias.thin"}
    assert run.findings.iloc[0]["model"] == "mine" and not run.findings.iloc[0]["void"]
    assert len(repr(run)) < 300
    report({"our words": evidence()}, tmp_path / "other", model="yours")
    other = read_run(tmp_path / "other")
    assert {change.metric for change in compare_runs(run, other, across_models=True).changes} >= {"bias.share"}
    with pytest.raises(StoreError, match="holds a run already"):
        report(evidence(), tmp_path / "run")
    with pytest.raises(UsageError, match="at least one evidence"):
        report([], tmp_path / "none")


def test_every_cell_of_the_documented_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    space: dict[str, Any] = {}
    shown = [run_cell("".join(cell["source"]), space) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert shown[1].startswith("<div><h4>bias</h4>") and "<table" in shown[2]
    assert "iframe" in shown[4] and shown[-1].startswith("(8, ")
    assert (tmp_path / "notebook-run" / "index.html").is_file()
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def run_cell(source: str, space: dict[str, Any]) -> str:
    """Run a cell and give what a notebook would show of its last expression."""
    body = ast.parse(source)
    last = body.body[-1]
    value = None
    if isinstance(last, ast.Expr):
        body.body.pop()
        exec(compile(body, "cell", "exec"), space)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
    else:
        exec(compile(body, "cell", "exec"), space)
    if hasattr(value, "_repr_mimebundle_"):
        return str(present(value)._repr_mimebundle_()["text/html"])
    return str(present(value)._repr_html_()) if hasattr(value, "_repr_html_") else repr(value)
