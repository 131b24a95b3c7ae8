"""What an Allure report says of the run as a whole, and the removal of the tracking that Allure 3 builds in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.report.page.provenance import provenance
from lm_audit.runstore.records import Run

CATEGORIES: list[dict[str, Any]] = [
    {"name": "Control failed: the audit is void", "matchedStatuses": ["failed"], "messageRegex": "(?s).*control.*"},
    {"name": "Gate missed", "matchedStatuses": ["failed"], "messageRegex": "(?s).*(missed|beyond the limit).*"},
    {"name": "Gate undecided", "matchedStatuses": ["failed"], "messageRegex": "(?s).*(undecided|straddles).*"},
    {"name": "Worker died", "matchedStatuses": ["broken"], "messageRegex": "(?s).*(crashed|died|killed).*"},
    {"name": "Bad input", "matchedStatuses": ["broken", "failed"], "messageRegex": "(?s).*(Data|Usage|Model)Error.*"},
    {"name": "Broke before measuring", "matchedStatuses": ["broken"]},
    {"name": "Model or data absent", "matchedStatuses": ["skipped"]},
]  # fmt: skip
_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.IGNORECASE | re.DOTALL)
_REMOTE = re.compile(r"\b(?:src|href)\s*=\s*[\"']?\s*(?:https?:)?//", re.IGNORECASE)
_TRACKING = ("googletagmanager", "google-analytics", "gtag(", "dataLayer")
_LONG = 10_000
"""Characters of a script above which it is the application itself, in which such words may stand for other reasons."""
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
_META = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'


def write_categories(results: Path) -> None:
    """Write categories.json: failures sorted by what a reader does about them."""
    (results / "categories.json").write_text(json.dumps(CATEGORIES, indent=1), encoding="utf-8")


def write_environment(run: Run, results: Path) -> None:
    """Write environment.properties from the run's provenance."""
    pairs = [pair for _, group in provenance(run) for pair in group if pair[1] not in ("{}", "null", "")]
    lines = [f"{_key(name)}={_value(text)}" for name, text in dict(pairs).items()]
    (results / "environment.properties").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _key(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text.removeprefix("options \u203a ")).strip("_")


def _value(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", " ")[:500]


def strip_analytics(folder: str | Path) -> int:
    """Remove the tracking scripts from every page of a built Allure report; the number of scripts removed.

    Allure 3 embeds Google Analytics in every report and has no working switch against it. Each page also gets a policy
    that forbids requests to other places, for what a later Allure may add. Raises ``StoreError`` where the folder holds
    no page.
    """
    pages = [path for path in sorted(Path(folder).rglob("*.html")) if not path.name.endswith("-attachment.html")]
    if not pages:
        raise StoreError(f"no page of an Allure report in {folder}")
    return sum(_strip_page(path) for path in pages)


def _strip_page(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    removed = sum(_is_tracking(found) for found in _SCRIPT.finditer(text))
    clean = _SCRIPT.sub(lambda found: "" if _is_tracking(found) else found.group(), text)
    if _META not in clean:
        clean = re.sub(r"<head\b[^>]*>", lambda found: found.group() + _META, clean, count=1)
    if clean != text:
        path.write_text(clean, encoding="utf-8")
    return removed


def _is_tracking(script: re.Match[str]) -> bool:
    attributes, body = script.groups()
    return bool(_REMOTE.search(attributes)) or (len(body) < _LONG and any(word in body for word in _TRACKING))
