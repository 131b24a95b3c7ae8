"""What a report says was found, for tests in which an effect was planted or was not."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path

from lm_audit.evidence import Evidence
from lm_audit.report import report
from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.runstore import read_run


@dataclass(frozen=True)
class Told:
    """What a report says was found: by the first screen, by the terminal, by summary.json."""

    heading: str
    screen: list[str]
    terminal: str
    summary: dict[str, str]

    def says(self, statement: str) -> bool:
        """Whether all three say so."""
        return (
            any(statement in one for one in self.screen)
            and statement in self.terminal
            and any(statement in one for one in self.summary)
        )


def told(folder: Path, *evidences: Evidence) -> Told:
    """Write the report of these cases and read it back."""
    page = report({f"case-{k}": evidence for k, evidence in enumerate(evidences)}, folder, model="mine")
    text = page.read_text(encoding="utf-8")
    findings = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["findings"]
    return Told(
        html.unescape(re.findall(r"<h1[^>]*>(.*?)</h1>", text, re.S)[0]).strip(),
        [html.unescape(one) for one in re.findall(r'<p class="f-say">(.*?)</p>', text)],
        " ".join(" ".join(summary_lines(read_run(folder), width=400)).split()),
        {one["statement"]: one["verdict"] for one in findings if one["verdict"] == "found"},
    )


def clean(found: Told) -> None:
    """Nothing is said to be found, anywhere."""
    assert (
        found.heading.startswith(("Nothing found", "Nothing could be told"))
        and found.screen == []
        and found.summary == {}
    )
    assert "! found" not in found.terminal
