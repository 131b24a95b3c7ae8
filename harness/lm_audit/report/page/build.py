"""Builds what the page shows from a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lm_audit.report.charts import vega
from lm_audit.report.charts.shown_figures import FigureDrawer
from lm_audit.report.comparison.models_compared import compared_models
from lm_audit.report.conclusions.answer import answer
from lm_audit.report.conclusions.by_strength import model_findings
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.columns import BUILT_IN_TOY, column_of, model_columns, shared_controls
from lm_audit.report.page.compared import compared_views
from lm_audit.report.page.interval_bar import Scale, bar, common_scale
from lm_audit.report.page.overview import case_counts, cell, model_state
from lm_audit.report.page.packing import PackedRows, pack
from lm_audit.report.page.provenance import provenance
from lm_audit.report.page.states import case_state, worst
from lm_audit.report.page.view import (
    AuditView,
    CaseView,
    CellView,
    ItemsView,
    MetricView,
    ModelFindings,
    ModelView,
    PageView,
    VoidView,
)
from lm_audit.report.tables.item_reading import Items, collect_items
from lm_audit.report.wording.names import anchor, case_label, visible
from lm_audit.report.wording.numbers import (
    chance_text,
    count,
    duration,
    few_reason,
    few_text,
    interval_text,
    moment,
    sample_size,
    value_text,
)
from lm_audit.report.wording.titles import metric_hint, metric_title
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.stats.estimate import Estimate

Family = tuple[str, str | None]
Scales = dict[Family, Scale | None]
UNMARKED = "other"
PARAMETER_LIMIT = 2_000


def build_page(run: Run, items: Items | None = None, *, drawer: FigureDrawer | None = None) -> PageView:
    """Everything that the page of ``run`` shows; ``items`` are its rows where they have been read already."""
    drawer = drawer or FigureDrawer()
    items = items or collect_items(run)
    run = replace(run, damaged=(*run.damaged, *items.damaged))
    packed = items.packed
    voids = Voids(run)
    scales = _scales(run)
    cases = [_case(run, case, case in voids, scales, packed, drawer) for case in run.cases]
    models = model_columns(run)
    shared = shared_controls(run)
    findings = model_findings(run, voids, models, column_of)
    audits = tuple(_audit(name, cases, models, voids, shared, findings) for name in _audit_names(run))
    cells = [cell for audit in audits for cell in audit.cells]
    columns = tuple(_model(run, name, [cell for cell in cells if cell.model == name]) for name in models)
    data = {items_id(case_id): rows.text for case_id, rows in packed.items()}
    if drawer.charts:
        data["charts"] = pack(drawer.charts)
    return PageView(
        run_id=visible(run.run_id),
        answer=answer(run, findings, voids.summaries(), [case.state for case in cases]),
        models=columns,
        audits=audits,
        facts=_facts(run, columns),
        provenance=provenance(run),
        findings=findings,
        voids=tuple(_void(audit, *told, voids.audits()[audit]) for audit, told in voids.summaries().items()),
        missing=tuple(visible(case_id) for case_id in run.missing),
        damaged=tuple(visible(f"{line.place}: {line.reason}") for line in run.damaged),
        finished=run.finished,
        when=moment(_when(run)),
        data=data,
        runtime=vega.runtime() if drawer.charts else None,
        compared=compared_views(compared_models(run, seed=int(_options(run).get("seed") or 0))),
    )


def _void(audit: str, models: str, summary: str, reasons: Iterable[str]) -> VoidView:
    return VoidView(
        visible(audit), visible(models), visible(summary), tuple(map(visible, reasons)), anchor("audit", audit)
    )


def items_id(case_id: str) -> str:
    """The id of the script element that holds a case's item rows."""
    return anchor("items", case_id)


def _scales(run: Run) -> Scales:
    groups: dict[Family, list[Estimate]] = {}
    for case in run.cases:
        for name, estimate in case.last.metrics.items():
            groups.setdefault(_family(name, estimate), []).append(estimate)
    return {family: common_scale(estimates) for family, estimates in groups.items()}


def _family(name: str, estimate: Estimate) -> tuple[str, str | None]:
    """What is compared with each other: ``bias.group_score.man`` and ``bias.group_score.woman``, in one unit."""
    return ".".join(name.split(".")[:2]), estimate.unit


def _case(
    run: Run,
    case: CaseRecord,
    void: bool,
    scales: Scales,
    packed: dict[str, PackedRows],
    drawer: FigureDrawer,
) -> CaseView:
    rows = packed.get(case.case_id)
    items = None
    if rows is not None:
        items = ItemsView(items_id(case.case_id), rows.shown, rows.total, (), tuple(map(visible, case.last.row_files)))
    return CaseView(
        record=case,
        anchor=anchor("case", case.case_id),
        label=visible(case_label(case)),
        state=case_state(case, void=void),
        metrics=_metrics(case, scales),
        figures=tuple(drawer.view(figure) for figure in case.last.figures),
        items=items,
        parameters={visible(name): _parameter(value) for name, value in case.last.parameters.items()},
    )


def _metrics(case: CaseRecord, scales: Scales) -> tuple[MetricView, ...]:
    names = list(case.last.metrics)
    headline = case.last.headline if case.last.headline in names else next(iter(names), None)
    names.sort(key=lambda name: name != headline)
    return tuple(
        MetricView(
            name=visible(name),
            label=metric_title(name, case.audit),
            hint=metric_hint(name, case.audit, estimate),
            value=value_text(estimate),
            interval=interval_text(estimate),
            n=sample_size(estimate),
            chance=chance_text(estimate),
            bar=bar(estimate, scales[_family(name, estimate)]),
            estimate=estimate,
            verdicts=tuple(verdict for verdict in case.verdicts if verdict.metric == name),
            headline=name == headline,
            few=few_reason(estimate) if few_text(estimate) else "",
        )
        for name, estimate in ((name, case.last.metrics[name]) for name in names)
    )


def _parameter(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return visible(text if len(text) <= PARAMETER_LIMIT else f"{text[:PARAMETER_LIMIT]}\u2026")


def _audit(
    name: str,
    cases: Sequence[CaseView],
    models: Sequence[str],
    voids: Voids,
    shared: frozenset[str],
    findings: Sequence[ModelFindings],
) -> AuditView:
    own = _side_by_side([case for case in cases if (case.record.audit or UNMARKED) == name])
    where = anchor("audit", name)
    cells: list[CellView] = []
    for model in models:
        on_model = [case for case in own if column_of(case.record) == model]
        elsewhere = [case for case in own if case.record.case_id in shared and case not in on_model]
        void = bool(voids.reasons(name, model)) or any(case.state.name == "void" for case in on_model)
        told = next((entry for entry in findings if entry.model == visible(model)), None)
        cells.append(cell(name, model, on_model, where, void=void, elsewhere=elsewhere, findings=told))
    return AuditView(
        name=visible(name),
        anchor=where,
        state=worst(c.state for c in cells),
        cells=tuple(cells),
        cases=tuple(own),
        void_reasons=tuple(map(visible, voids.audits().get(name, ()))),
        counts=case_counts(own),
    )


def _side_by_side(cases: Sequence[CaseView]) -> list[CaseView]:
    """The cases in order of appearance, but one case on several models as neighbours."""
    place = {label: at for at, label in enumerate(dict.fromkeys(case.label for case in cases))}
    return sorted(cases, key=lambda case: place[case.label])


def _audit_names(run: Run) -> list[str]:
    names = dict.fromkeys(case.audit for case in run.cases if case.audit)
    unmarked = [UNMARKED] if any(case.audit is None for case in run.cases) else []
    return [*names, *unmarked]


def _model(run: Run, name: str, cells: Sequence[CellView]) -> ModelView:
    own = [case for case in run.cases if column_of(case) == name]
    details = next((case.model_details for case in own if case.model_details), {})
    devices = ", ".join(dict.fromkeys(case.device for case in own if case.device))
    toy = name == BUILT_IN_TOY
    words = [*dict.fromkeys(case.model for case in own if case.model)] if toy else []
    dtype = str(details.get("dtype", "")).removeprefix("torch.")
    detail = " \u00b7 ".join(part for part in (*words, devices, dtype) if part)
    if toy:
        detail += "; no part of the answer"
    return ModelView(
        visible(name),
        model_state(cells),
        visible(details.get("fingerprint", ""))[:12],
        visible(detail),
        toy=toy,
        told=_told(own),
    )


def _told(cases: Sequence[CaseRecord]) -> tuple[str, ...]:
    """What was warned of when the model of some cases loaded."""
    told = [case.model_details.get("told") for case in cases]
    lines = dict.fromkeys(line for one in told if isinstance(one, list) for line in one if isinstance(line, str))
    return tuple(_parameter(line) for line in lines)


def _facts(run: Run, models: Iterable[ModelView]) -> tuple[tuple[str, str], ...]:
    outcomes = Counter(case.outcome for case in run.cases)
    seconds = _duration(run)
    rows = sum(case.last.n_rows for case in run.cases)
    facts = [
        ("Models", ", ".join(model.name for model in models)),
        ("Cases", f"{len(run.cases)} ({', '.join(f'{outcomes[word]} {word}' for word in sorted(outcomes))})"),
        ("Items", count(rows)),
        ("Duration", duration(seconds)),
        ("Size", str(_options(run).get("size") or run.metadata.get("size") or "")),
        ("Tags", ", ".join(map(str, _options(run).get("tags") or ()))),
    ]
    return tuple((name, visible(value)) for name, value in facts if value)


def _options(run: Run) -> dict[str, Any]:
    options = run.metadata.get("options")
    return dict(options) if isinstance(options, dict) else {}


def _duration(run: Run) -> float | None:
    """What the sessions of the run took; of one that does not say it, from start to finish, or what its cases span."""
    if run.seconds is not None:
        return run.seconds
    ends = [str(run.metadata.get(key) or "") for key in ("started", "finished")]
    if all(ends) and len(run.metadata.get("sessions") or ()) == 1:
        try:
            start, finish = map(datetime.fromisoformat, ends)
            return (finish - start).total_seconds()
        except (TypeError, ValueError):
            pass
    return _span(run)


def _span(run: Run) -> float | None:
    starts = [case.last.started for case in run.cases if case.last.started is not None]
    ends = [case.last.started + (case.last.duration_s or 0) for case in run.cases if case.last.started is not None]
    return max(ends) - min(starts) if starts else None


def _when(run: Run) -> object:
    known = (run.metadata.get(key) for key in ("started", "start", "started_at", "time", "created"))
    return next((value for value in known if value), None)
