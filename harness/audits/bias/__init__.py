"""Bias: log-probability preference between words across social groups, and the public bias benchmarks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Axis": "lexicon",
    "PreferenceSet": "lexicon",
    "WordPair": "lexicon",
    "load_preference_set": "lexicon",
    "lint": "linting",
    "lint_tokens": "linting",
    "ProbeResult": "minimal",
    "minimal_probe": "minimal",
    "load_rows": "rows",
    "crows_pairs": "crows_audit",
    "stereoset": "stereoset_audit",
    "winobias": "wino_audit",
    "winogender": "wino_audit",
    "bbq": "bbq_audit",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Lazily, so that collecting the cases imports neither torch nor pandas. No module bears the name of a public
    # function, since importing it would put the module in the function's place.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    return getattr(import_module(f"{__name__}.{home}"), name)
