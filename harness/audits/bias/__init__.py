"""Bias: log-probability preference between words across social groups, and the public bias benchmarks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Axis": "lexicon",
    "PreferenceSet": "lexicon",
    "WordPair": "lexicon",
    "load_preference_set": "lexicon",
    "lint": "lint",
    "lint_tokens": "lint",
    "ProbeResult": "minimal",
    "minimal_probe": "minimal",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Lazily, so that collecting the cases imports neither torch nor pandas.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    return getattr(import_module(f"{__name__}.{home}"), name)
