"""What the page says was found, could not be told and was excluded, model by model, in order of strength."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lm_audit.findings.record import Finding
from lm_audit.report.conclusions.findings_told import ranked_findings
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.interval_bar import bar, common_scale
from lm_audit.report.page.states import Tone
from lm_audit.report.page.view import FindingView, ModelFindings
from lm_audit.report.wording.names import anchor, case_label, visible
from lm_audit.report.wording.numbers import chance_text, few_text, interval_text, p_text, sample_size, value_text
from lm_audit.report.wording.titles import metric_hint, metric_unit
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.stats.covering import too_few
from lm_audit.stats.estimate import Estimate

Placed = tuple[CaseRecord, Finding]
TONES: dict[str, Tone] = {"found": "missed", "cannot tell": "undecided", "not found": "met"}


def model_findings(
    run: Run, voids: Voids, columns: Sequence[str], column_of: Callable[[CaseRecord], str]
) -> tuple[ModelFindings, ...]:
    """The claims of each column that count: those of void audits are left out, controls speak of the audit alone."""
    claims = [placed for placed in by_strength(run) if placed[1].kind == "claim"]
    made = []
    for name in columns:
        own = [placed for placed in claims if column_of(placed[0]) == name]
        counted = [placed for placed in own if placed[0] not in voids]
        many = {(case.audit, finding.headline) for case, finding in counted}
        tested = [(case.audit, finding.headline) for case, finding in counted if finding.adjusted is not None]
        sizes = {key: tested.count(key) for key in many}
        views = [_view(case, finding, sizes[case.audit, finding.headline]) for case, finding in counted]
        if own:
            made.append(
                ModelFindings(
                    model=visible(name),
                    found=tuple(view for view in views if view.verdict == "found"),
                    unknown=tuple(view for view in views if view.verdict == "cannot tell"),
                    absent=tuple(view for view in views if view.verdict == "not found"),
                    void=len(own) - len(counted),
                )
            )
    return tuple(made)


def by_strength(run: Run) -> list[Placed]:
    """The findings of a run: by verdict and p-value, and where these tie by distance in units of the interval."""
    return sorted(ranked_findings(run), key=lambda placed: _rank(placed[1]))


def _rank(finding: Finding) -> tuple[int, bool, float, float]:
    p = finding.p if finding.adjusted is None else finding.adjusted
    order = ("found", "cannot tell", "not found").index(finding.verdict)
    return order, not finding.headline, round(2.0 if p is None else p, 6), -distance(finding)


def distance(finding: Finding) -> float:
    """How many half widths of its interval the effect lies from what no effect would give; 0 where that is unknown."""
    effect, null = finding.effect, finding.null
    if effect is None or null is None or effect.value is None:
        return 0.0
    bound = effect.low if effect.value > null else effect.high
    half = 0.0 if bound is None else abs(effect.value - bound)
    return abs(effect.value - null) / half if half else 0.0


def _null_text(finding: Finding, drawn: Estimate | None) -> str:
    """What the effect is held against; with a margin of 0 that is a limit, such as the threshold of a needle grid."""
    told = chance_text(drawn) if drawn else ""
    return f"{'the limit' if finding.margin == 0 else 'without an effect'}: {told}" if told else ""


def _view(case: CaseRecord, finding: Finding, family: int) -> FindingView:
    effect = finding.effect
    drawn = None if effect is None else replace(effect, chance=finding.null)
    return FindingView(
        key=visible(finding.key),
        statement=visible(finding.statement),
        verdict=finding.verdict,
        tone=TONES[finding.verdict],
        audit=visible(case.audit or ""),
        case=visible(case_label(case)),
        anchor=anchor("case", case.case_id),
        value=value_text(drawn) if drawn else "",
        interval=interval_text(drawn) if drawn else "",
        unit=metric_unit(finding.metric, effect) if effect else "",
        bar=bar(drawn, common_scale([drawn])) if drawn else bar(None, None),
        null=_null_text(finding, drawn),
        few=few_text(effect) if effect else "",
        sure=sureness(finding, family),
        size=visible(finding.amount),
        reason=visible(finding.reason),
        needed=needed_text(finding),
        look=visible(finding.look),
        docs=visible(f"docs/{finding.page}") if finding.page else "",
        exploratory=not finding.headline,
        hint=metric_hint(finding.metric, case.audit, effect) if finding.metric and effect else "",
    )


def sureness(finding: Finding, family: int) -> str:
    """``p 0.002, corrected for 14 findings · n 120``."""
    parts = []
    p = finding.p if finding.adjusted is None else finding.adjusted
    if p is not None:
        many = finding.adjusted is not None and family > 1
        parts.append(f"p {p_text(p)}" + (f", corrected for {family} findings" if many else ""))
    if finding.effect is not None and finding.effect.n is not None:
        parts.append(f"n {sample_size(finding.effect)}")
    return " \u00b7 ".join(parts)


def needed_text(finding: Finding) -> str:
    """``about 96 questions would tell``, empty where nobody knows.

    Of too few for an interval nothing is known of their spread, and so only how many an interval takes.
    """
    if not finding.needed:
        return ""
    if finding.effect is not None and too_few(finding.effect):
        return f"at least {finding.needed:,} {visible(finding.counted)} are needed"
    return f"about {finding.needed:,} {visible(finding.counted)} would tell"


def counts_of(models: Iterable[ModelFindings]) -> dict[str, int]:
    """How many were found, cannot be told and were excluded, headline findings alone."""
    every = [view for model in models for view in (*model.found, *model.unknown, *model.absent)]
    return {word: sum(view.verdict == word and not view.exploratory for view in every) for word in TONES}
