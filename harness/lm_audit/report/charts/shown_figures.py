"""Figures made ready for the page: SVG, coloured tokens, tables; or a chart that the browser draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup, escape

from lm_audit.errors import HarnessError
from lm_audit.evidence import Figure
from lm_audit.report.charts import vega
from lm_audit.report.charts.coloured_tokens import TokenView, token_view
from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import trimmed
from lm_audit.shared.number_checks import is_number

TABLE_ROWS = 400
"""Rows of a table figure that the page holds; all of them are in the run store."""


@dataclass(frozen=True)
class TableView:
    """A table figure: titles and cells as (text, is a number), and how many rows were left out."""

    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[tuple[str, bool], ...], ...]
    left_out: int


@dataclass(frozen=True)
class FigureView:
    """One figure, as ``svg``, ``chart`` (an index into the page's charts), ``tokens``, ``table`` or ``problem``."""

    name: str
    title: str
    caption: str
    svg: Markup | None = None
    chart: int | None = None
    tokens: TokenView | None = None
    table: TableView | None = None
    problem: str | None = None


@dataclass
class FigureDrawer:
    """Draws figures until the page's share of static pictures is used up; later ones are drawn by the reader's browser.

    ``static_charts`` and ``static_bytes`` bound time (about 35 ms a chart) and size of the page.
    """

    static_charts: int = 80
    static_bytes: int = 4_000_000
    charts: list[Mapping[str, Any]] = field(default_factory=list)
    _drawn: int = 0

    def view(self, figure: Figure) -> FigureView:
        """The figure as the page shows it; a figure that cannot be drawn says why instead of ending the report."""
        base = FigureView(visible(figure.name), visible(figure.title), visible(figure.caption))
        try:
            if figure.kind == "tokens":
                return replace(base, tokens=token_view(figure.data))
            if figure.kind == "table":
                return replace(base, table=table_view(figure.data))
            if figure.kind == "vega-lite":
                return self._chart(figure, base)
        except Exception as error:  # Whatever a figure holds, it costs this figure only.
            return replace(base, problem=visible(f"{type(error).__name__}: {error}"))
        return replace(base, problem=f"this version cannot draw figures of kind {figure.kind!r}")

    def _chart(self, figure: Figure, base: FigureView) -> FigureView:
        vega.check_inline(figure.data)
        interactive = vega.is_interactive(figure.data)
        if self.static_charts <= 0 or self.static_bytes <= 0:
            vega.runtime()  # Without it no browser draws the chart, and its view says why.
            return replace(base, chart=self._keep(figure.data))
        self._drawn += 1
        svg = vega.to_svg(figure.data, prefix=f"f{self._drawn}-")
        svg = svg.replace('role="img"', f'role="img" aria-label="{escape(base.title)}"', 1)
        self.static_charts -= 1
        self.static_bytes -= len(svg)
        return replace(base, svg=Markup(svg), chart=self._keep(figure.data) if interactive and _runs() else None)

    def _keep(self, spec: Mapping[str, object]) -> int:
        self.charts.append(spec)
        return len(self.charts) - 1


def _runs() -> bool:
    """Whether a reader's browser can be given what draws charts."""
    try:
        return bool(vega.runtime())
    except HarnessError:
        return False


def table_view(data: Mapping[str, Any]) -> TableView:
    """The first rows of a table figure as text."""
    columns = data["columns"]
    rows = data.get("rows") or []
    names = [column["name"] for column in columns]
    shown = tuple(tuple(_cell(row.get(name)) for name in names) for row in rows[:TABLE_ROWS])
    titles = tuple(
        (visible(column.get("title") or column["name"]), bool(shown) and all(row[at][1] for row in shown))
        for at, column in enumerate(columns)
    )
    return TableView(titles, shown, max(0, len(rows) - TABLE_ROWS))


def _cell(value: object) -> tuple[str, bool]:
    if isinstance(value, float) or is_number(value):
        return trimmed(value), True
    return ("" if value is None else visible(value)), False
