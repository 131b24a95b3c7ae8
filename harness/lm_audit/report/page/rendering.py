"""Renders the page of a run into one file that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from lm_audit.report.charts import vega
from lm_audit.report.page.columns import NO_MODEL
from lm_audit.report.page.late_cases import late_cases
from lm_audit.report.page.states import SEVERITY, SYMBOLS, State
from lm_audit.report.page.view import PageView
from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import count, duration

TABLES = ("metrics.csv", "metrics.parquet", "items.csv", "items.parquet", "evidence.jsonl", "junit.xml")
_RESOURCES = files("lm_audit.report")


def render_page(page: PageView) -> str:
    """The page as HTML. Every text in ``page`` is escaped; the policy in its head forbids any request."""
    script = _script(page)
    present = {case.state.name for audit in page.audits for case in audit.cases}
    present |= {cell.state.name for audit in page.audits for cell in audit.cells}
    states = [State(name) for name in SEVERITY if name in present and name != "absent"]
    alone = environment().get_template("case.html.j2")
    late = late_cases(page.audits, lambda case: str(alone.render(case=case, page=page)))
    html: str = (
        environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            late=late,
            css=Markup(resource("static/page.css")),
            js=Markup(script),
            csp=policy(script, *([page.runtime] if page.runtime else [])),
            runtime=_packed(page.runtime),
            legend=states,
            states=states,
            tables=TABLES,
        )
    )
    return html


@cache
def environment() -> Any:
    """The template environment: escapes everything, and an unknown name is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(lambda name: resource(f"templates/{name}"))
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"visible": visible, "count": count, "duration": duration, "file_url": file_url}
    made.globals |= {"symbols": SYMBOLS, "no_model": NO_MODEL}
    return made


def _harmless(value: object) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def resource(name: str) -> str:
    """The text of a template, style sheet or script of the report."""
    return _RESOURCES.joinpath(name).read_text(encoding="utf-8")


def policy(*scripts: str) -> str:
    """A content security policy under which these scripts run and nothing can be loaded from anywhere."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def file_url(path: str) -> str:
    """A path of the run folder as a relative link; never one that a browser takes for a scheme."""
    return "./" + quote(path.encode("utf-8", "surrogateescape" if _names_a_file(path) else "backslashreplace"))


def _names_a_file(path: str) -> bool:
    """Whether lone surrogates in ``path`` stand for bytes of a file name, as Python reads them."""
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _script(page: PageView) -> str:
    script = resource("static/theme.js") + resource("static/page.js")
    config = json.dumps(vega.CONFIG) if page.runtime else "{}"
    return script.replace("const CONFIG = {};", f"const CONFIG = {config};")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def _packed(code: str | None) -> str | None:
    return None if code is None else base64.b64encode(gzip.compress(code.encode(), mtime=0)).decode("ascii")
