"""What an Allure report says of the run as a whole, and the removal of the tracking that Allure 3 builds in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from harness.errors import StoreError
from harness.report.provenance import provenance
from harness.runstore.records import Run

CATEGORIES: list[dict[str, Any]] = [
    {"name": "Control failed: the audit is void", "matchedStatuses": ["failed"], "messageRegex": "(?s).*control.*"},
    {"name": "Gate missed", "matchedStatuses": ["failed"], "messageRegex": "(?s).*(missed|beyond the limit).*"},
    {"name": "Gate undecided", "matchedStatuses": ["failed"], "messageRegex": "(?s).*(undecided|straddles).*"},
    {"name": "Worker died", "matchedStatuses": ["broken"], "messageRegex": "(?s).*(crashed|died|killed).*"},
    {"name": "Bad input", "matchedStatuses": ["broken", "failed"], "messageRegex": "(?s).*(Data|Usage|Model)Error.*"},
    {"name": "Broke before measuring", "matchedStatuses": ["broken"]},
    {"name": "Model or data absent", "matchedStatuses": ["skipped"]},
]  # fmt: skip
_TRACKER = re.compile(r"<script\b[^>]*\bsrc=[\"']?https?://[^>]*>\s*</script>", re.IGNORECASE)
_TAG_CALL = re.compile(r"<script\b[^>]*>(?:(?!</script>).)*?\bdataLayer\b(?:(?!</script>).)*?</script>", re.DOTALL)
_REMOTE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?https?://", re.IGNORECASE)


def write_categories(results: Path) -> None:
    """Write categories.json: failures sorted by what a reader does about them."""
    (results / "categories.json").write_text(json.dumps(CATEGORIES, indent=1), encoding="utf-8")


def write_environment(run: Run, results: Path) -> None:
    """Write environment.properties from the run's provenance."""
    lines = [f"{_key(f'{title}.{name}')}={_value(text)}" for title, pairs in provenance(run) for name, text in pairs]
    (results / "environment.properties").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _key(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("_")


def _value(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", " ")[:500]


def strip_analytics(folder: str | Path) -> int:
    """Remove the tracking scripts from every page of a built Allure report; the number of scripts removed.

    Allure 3 embeds Google Analytics in every report and has no working switch against it. Raises ``StoreError`` where a
    page still loads something from a network afterwards: a newer Allure that does it in another way.
    """
    removed = 0
    for path in sorted(Path(folder).rglob("*.html")):
        if path.name.endswith("-attachment.html"):
            continue
        text = path.read_text(encoding="utf-8")
        head, mark, rest = text.partition("</head>")
        clean, first = _TRACKER.subn("", head)
        clean, second = _TAG_CALL.subn("", clean)
        body, third = _TRACKER.subn("", rest)
        if first + second + third:
            path.write_text(clean + mark + body, encoding="utf-8")
            removed += first + second + third
        if found := _REMOTE.search(clean):
            raise StoreError(f"{path} still loads from a network after the removal of analytics: {found.group()[:200]}")
    return removed
