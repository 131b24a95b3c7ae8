"""What an effect is held against, as the page says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.findings import claim
from lm_audit.report.page.build import build_page
from lm_audit.report.page.rendering import render_page
from lm_audit.runstore.run import read_run
from lm_audit.stats import clopper_pearson
from tests.report.made_runs import MadeCase, write_run


@pytest.mark.parametrize(("margin", "told"), [(0.0, "the limit: 0.85"), (0.05, "without an effect: 0.85")])
def test_a_limit_is_no_absent_effect(tmp_path: Path, margin: float, told: str) -> None:
    """Needles are held against the share that was asked for: 0.85 is not what a model without an effect finds."""
    effect = clopper_pearson(0, 18)
    finding = claim("k", effect, found="few", absent="many", unknown="open", null=0.85, margin=margin, side="below")
    case = MadeCase("evals/t.py::test_grid[mine@cpu]", "needle", "mine", findings=[finding])
    page = build_page(read_run(write_run(tmp_path / "run", [case])))
    assert f'<p class="f-sure">{told} \u00b7 ' in render_page(page)
