"""The charts of a run as files: PNG and SVG, in the run folder."""

from __future__ import annotations

import re
from pathlib import Path

from lm_audit.errors import HarnessError, StoreError
from lm_audit.report.charts import vega
from lm_audit.report.wording.names import anchor, visible
from lm_audit.report.writing.of_run import write_text
from lm_audit.runstore.records import Run
from lm_audit.shared.textfiles import replacing

FOLDER = "plots"


def write_plots(run: Run) -> tuple[int, list[str]]:
    """Write ``plots/CASE/FIGURE.svg`` and ``.png`` of every chart; how many charts, and why any could not be drawn.

    Coloured text and tables are no pictures and stay on the page.
    """
    drawn, problems = 0, []
    for case in run.cases:
        for figure in case.last.figures:
            if figure.kind != "vega-lite":
                continue
            place = run.folder / FOLDER / anchor("case", case.case_id).removeprefix("case-")
            try:
                svg, png = vega.to_svg(figure.data, prefix=""), vega.to_png(figure.data)
                _inside(place, run.folder)
            except HarnessError as error:
                problems.append(f"{case.case_id}, {figure.name}: {error}")
                continue
            place.mkdir(parents=True, exist_ok=True)
            name = _file_name(figure.name)
            write_text(place / f"{name}.svg", svg)
            with replacing(place / f"{name}.png") as draft:
                draft.write_bytes(png)
            drawn += 1
    return drawn, problems


def plots_line(folder: Path) -> str:
    """Write the plots of the run in ``folder``; the line that says so."""
    from lm_audit.runstore.run import read_run

    drawn, problems = write_plots(read_run(folder))
    failed = f"; {len(problems)} could not be drawn, the first: {problems[0]}" if problems else ""
    # A case id, a figure's name and the folder are anybody's text.
    return visible(f"plots: {drawn} charts as SVG and PNG in {folder / FOLDER}{failed}")


def _file_name(name: str) -> str:
    """The figure's name where a file may have it; else with a hash, so that no two names give one file."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:60]
    return plain if plain == name else anchor("figure", name).removeprefix("figure-")


def _inside(place: Path, folder: Path) -> None:
    """``StoreError`` where a link leads out of the run's folder: nothing is written through it."""
    if not place.resolve().is_relative_to(folder.resolve()):
        raise StoreError(f"{FOLDER}/ leads out of the run folder: nothing is written there")
