"""Exporters to experiment trackers. Each needs an extra of its own; nothing is sent unless asked for by name."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from lm_audit.errors import UsageError

TARGETS = ("mlflow", "wandb")


def check_installed(target: str) -> None:
    """``UsageError`` where the library of ``target`` is not installed."""
    if find_spec(target) is None:
        raise UsageError(f"the {target} exporter needs its library: {_install(target)}")


def _install(target: str) -> str:
    return f'pip install "pytest-lm-audit[{target}]"'


def export(target: str, folder: str | Path) -> str:
    """Send a run to ``target``; one line that says where it went.

    Raises ``UsageError`` for an unknown target or one whose library is not installed.
    """
    if target not in TARGETS:
        raise UsageError(f"no exporter {target!r}; there are {', '.join(TARGETS)}")
    module = import_module(f"lm_audit.report.exporters.to_{target}")
    try:
        line: str = module.export_run(Path(folder))
    except ImportError as error:
        raise UsageError(f"the {target} exporter needs its library ({error}): {_install(target)}") from error
    return line
