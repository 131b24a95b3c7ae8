"""What the page says of the models of a run beside each other: the first compared with each of the others, in pairs."""

from __future__ import annotations

from collections.abc import Sequence

from lm_audit.report.comparison.rows import row_of
from lm_audit.report.comparison.runs import RunComparison
from lm_audit.report.comparison.text import ORDER, counts_text
from lm_audit.report.page.view import ComparedModels
from lm_audit.report.wording.names import anchor, tail


def compared_views(comparisons: Sequence[RunComparison]) -> tuple[ComparedModels, ...]:
    """One view a comparison: headlines in the order of what changed, and the findings that say something else."""
    return tuple(_view(comparison) for comparison in comparisons)


def _view(comparison: RunComparison) -> ComparedModels:
    headlines = sorted(
        (change for change in comparison.changes if change.decided),
        key=lambda change: (change.void, ORDER.index(change.direction), change.adjusted or 2.0),
    )
    rows = [
        row_of(change) | {"anchor": anchor("case", change.case_id_b), "case": _label(change.case_id_b)}
        for change in headlines
    ]
    telling = [row for row in rows if row["word"] in ("worse", "changed", "reversed", "better")]
    return ComparedModels(
        comparison=comparison,
        counts=tuple(counts_text(comparison)),
        telling=tuple(telling),
        rest=tuple(row for row in rows if row not in telling),
        moved=tuple(change for change in comparison.findings if change.told and not change.void),
    )


def _label(case_id: str) -> str:
    """``test_x[model@device-case]`` as ``x \u203a case``: the models stand in the table's head."""
    test, _, parameter = tail(case_id).removeprefix("test_").partition("[")
    case = parameter.removesuffix("]").partition("@")[2].partition("-")[2]
    words = test.replace("_", " ")
    return f"{words} \u203a {case}" if case else words
