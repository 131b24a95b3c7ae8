"""The page of all metrics, made from the tables of the audits: ``python -m lm_audit.audits.metrics_page FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from lm_audit.audits.metric_info import metric_table, range_text
from lm_audit.audits.registry import audit_packages

HEAD = """# Metrics

One entry for each metric that an audit records, or for a family of them: `{word}` stands for a part of the name that
differs. No value lies outside of the range, and a [gate](gates.md) whose limit does is refused. The page is made from
the tables in `harness/lm_audit/audits/<audit>/metric_table.py` by
`python -m lm_audit.audits.metrics_page docs/metrics.md`; reports show the same words.
"""


def metrics_page() -> str:
    """The page as Markdown, one table an audit of this package, without the audits of other distributions."""
    return "\n".join([HEAD, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    for audit, package in sorted(audit_packages().items()):
        if package.startswith("lm_audit.audits."):
            yield f"## {audit}\n\n| metric | name | unit | range | better | what it is |"
            yield "| --- | --- | --- | --- | --- | --- |"
            for entry in metric_table(audit):
                cells = (entry.title, entry.unit, range_text(entry.limits), _better(entry.better), entry.about)
                yield f"| `{entry.name}` | {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
            yield ""


def _better(better: str | None) -> str:
    if better is None:
        return ""
    return better.replace("target:", "near ")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(metrics_page().rstrip("\n") + "\n", encoding="utf-8")
