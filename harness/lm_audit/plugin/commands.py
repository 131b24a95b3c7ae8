"""``lm-audit run``: pytest on the audit cases that are installed, from any folder."""

from __future__ import annotations

import argparse
from typing import Any

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
    return int(pytest.main(suite_call(options.arguments)))
