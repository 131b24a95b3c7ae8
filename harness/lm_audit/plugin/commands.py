"""``lm-audit run``: pytest on the audit cases that are installed, from any folder."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import Any

from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.suite import suite_call


def register(subparsers: Any) -> None:
    """Add ``run``."""
    run = subparsers.add_parser(
        "run",
        help="run the audits that are installed",
        description="Runs pytest on the installed audit cases; all arguments are pytest's and the plugin's: "
        "lm-audit run -m bias --model SPEC is pytest --pyargs lm_audit.evals -m bias --model SPEC.",
        add_help=False,
        prefix_chars="\0",
    )
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    run.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    import pytest

    if {"-h", "--help"}.intersection(options.arguments):
        from lm_audit.plugin.options.help_text import help_text

        print(help_text(), end="")
        return 0
    _check_added()
    return int(pytest.main(suite_call(options.arguments)))


def _check_added() -> None:
    """``UsageError`` for ``PYTEST_ADDOPTS`` with an open quote, of which pytest itself gives a traceback."""
    added = os.environ.get("PYTEST_ADDOPTS", "")
    try:
        shlex.split(added)
    except ValueError as error:
        raise UsageError(f"PYTEST_ADDOPTS={added[:200]!r} cannot be divided into words: {error}") from error
