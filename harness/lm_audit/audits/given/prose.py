"""Plain text that a user gives; rows and pages in a file that is called one are told."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

from lm_audit.errors import DataWarning
from lm_audit.shared.textfiles import text_of

_PAGE = re.compile(r"\s*<(?:!doctype\s|html[\s>]|\?xml\s)", re.IGNORECASE)


def prose_of(path: str | Path) -> str:
    """The text of a file, with a ``DataWarning`` where it is JSON Lines or a page of tags by another name.

    Raises what :func:`lm_audit.shared.textfiles.text_of` raises.
    """
    text = text_of(path)
    told = None
    if _is_object(text.lstrip().partition("\n")[0]):
        told = "its lines are JSON objects, and are read as plain text; name it .jsonl to have the texts in them read"
    elif _PAGE.match(text):
        told = "is a page, and its tags are read as text; save it as plain text"
    if told:
        warnings.warn(f"{path}: {told}", DataWarning, stacklevel=2)
    return text


def _is_object(line: str) -> bool:
    if not line.startswith("{") or len(line) > 10_000_000:
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
