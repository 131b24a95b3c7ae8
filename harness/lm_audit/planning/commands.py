"""``lm-audit plan``: what a run could decide, before it runs; and ``lm-audit list``, which has a module of its own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from lm_audit.planning import list_command

_DESCRIPTION = """Says, for each gate and each headline metric of a selection, how many independent units there are, how
wide an interval to expect, the smallest effect that would be found with power 0.8, what cannot be decided at this size,
and the size that could. The arguments are those of pytest evals: --gates FILE, --size, -m, -k, --model, --data and the
audits' own. --json prints the same as JSON. Nothing is run and no model is loaded."""


def register(subparsers: Any) -> None:
    """Add ``plan`` and ``list``."""
    list_command.register(subparsers)
    plan: argparse.ArgumentParser = subparsers.add_parser(
        "plan",
        help="what a run could decide, before it runs",
        description=_DESCRIPTION,
        usage="lm-audit plan [--json] [--gates FILE] [--size SIZE] [-m MARKERS] [-k WORDS] [--model SPEC] ...",
        # Everything belongs to pytest: with no prefix, argparse keeps its hands off.
        prefix_chars="\0",
        add_help=False,
    )
    plan.add_argument("arguments", nargs=argparse.REMAINDER)
    plan.set_defaults(run=run, show_help=plan.format_help)


def run(args: argparse.Namespace) -> int:
    """Print the plan; returns 0, also where gates cannot be decided: that is what it is asked for."""
    given = list(args.arguments)
    if {"-h", "--help"}.intersection(given):
        print(args.show_help(), end="")
        return 0
    from lm_audit.planning.collecting import collect
    from lm_audit.planning.table import as_json, lines
    from lm_audit.plugin.options.run_options import Size

    wants_json = "--json" in given
    words = [*_suite(), *(word for word in given if word != "--json")]
    now = collect(words)
    if wants_json:
        print(json.dumps(as_json(now), indent=1))
        return 0
    sizes = get_args(Size)
    further = sizes[sizes.index(now.size) + 1 :] if now.gates else ()
    for line in lines(now, {size: collect([*words, "--size", size]) for size in further}):
        print(line)
    return 0


def _suite() -> Sequence[str]:
    """Where the audits' cases are: ``evals`` here, else those that are installed, or of the checkout."""
    from lm_audit.plugin.audit_cases.suite import suite_arguments

    if Path("evals").is_dir():
        return ["-p", "lm_audit.plugin", "evals"]
    return ["-p", "lm_audit.plugin", "-p", "lm_audit.plugin.short_options", *suite_arguments()]
