"""``lm-audit plan``: what a run could decide, before it runs; and ``lm-audit list``, which has a module of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from lm_audit.planning import list_command
from lm_audit.planning.asking import add_question

_DESCRIPTION = """Says, for each gate and each headline metric of a selection, how many independent units there are, how
wide an interval to expect, the smallest effect that would be found with power 0.8, what cannot be decided at this size,
and the size that could. The arguments are those of lm-audit run: --gates FILE, --size, -m, -k, --model, --data and the
audits' own. --json prints the same as JSON. Nothing is run and no model is loaded."""


def register(subparsers: Any) -> None:
    """Add ``plan`` and ``list``."""
    list_command.register(subparsers)
    add_question(
        subparsers,
        "plan",
        answer,
        help="what a run could decide, before it runs",
        description=_DESCRIPTION,
        options="[--gates FILE] [--size SIZE] [-m MARKERS] [-k WORDS] [--model SPEC]",
    )


def answer(given: Sequence[str], wants_json: bool) -> int:
    """Print the plan; returns 0, also where gates cannot be decided: that is what it is asked for."""
    from lm_audit.planning.collecting import collect
    from lm_audit.planning.table import as_json, lines
    from lm_audit.plugin.audit_cases.suite import suite_call
    from lm_audit.plugin.options.run_options import Size

    words = suite_call(given)
    now = collect(words)
    if wants_json:
        print(json.dumps(as_json(now), indent=1))
        return 0
    sizes = get_args(Size)
    further = sizes[sizes.index(now.size) + 1 :] if now.gates else ()
    for line in lines(now, {size: collect([*words, "--size", size]) for size in further}):
        print(line)
    return 0
