"""``lm-audit list``: audits, cases, what they need, sizes and options."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.errors import UsageError

_DESCRIPTION = """Lists the audits with their cases, what a case needs of a model, how many cases each size has, and the
audits' options. The arguments are those of pytest evals and of lm-audit run: -m, -k, --size, --model, --data. --json
prints the same as JSON. Nothing is run and no model is loaded."""


def register(subparsers: Any) -> None:
    """Add ``list``."""
    listing: argparse.ArgumentParser = subparsers.add_parser(
        "list",
        help="audits, cases, what they need, sizes and options",
        description=_DESCRIPTION,
        usage="lm-audit list [--json] [-m MARKERS] [-k WORDS] [--size SIZE] [--model SPEC] ...",
        # Everything belongs to pytest: with no prefix, argparse keeps its hands off.
        prefix_chars="\0",
        add_help=False,
    )
    listing.add_argument("arguments", nargs=argparse.REMAINDER)
    listing.set_defaults(run=run, show_help=listing.format_help)


def run(args: argparse.Namespace) -> int:
    """Print the list; 0. Raises ``UsageError`` where the arguments select nothing at any size."""
    given = list(args.arguments)
    if {"-h", "--help"}.intersection(given):
        print(args.show_help(), end="")
        return 0
    from lm_audit.planning.catalogue import catalogue
    from lm_audit.plugin.audit_cases.suite import suite_arguments

    plugins = ["-p", "lm_audit.plugin", "-p", "lm_audit.plugin.short_options"]
    found = catalogue([*plugins, *suite_arguments(), *(word for word in given if word != "--json")])
    if not any(found["sizes"].values()):
        raise UsageError(f"{' '.join(given) or 'this'} selects no case; audits are picked by -m: lm-audit list -m bias")
    if "--json" in given:
        print(json.dumps(found, indent=1))
        return 0
    for line in lines(found):
        print(line)
    return 0


def lines(found: Mapping[str, Any]) -> Iterable[str]:
    """The catalogue for people."""
    sizes = ", ".join(f"{size} {count}" for size, count in found["sizes"].items())
    yield f"cases by --size: {sizes}"
    for audit in found["audits"]:
        yield ""
        yield f"{audit['audit']}: {audit['about']}  ({audit['page']})"
        tests: dict[str, list[Mapping[str, Any]]] = {}
        for case in audit["cases"]:
            tests.setdefault(case["test"], []).append(case)
        for test, cases in tests.items():
            yield from _test(test, cases)
        for option in audit["options"]:
            default = "" if option["default"] in (None, False, [], ()) else f" (default {option['default']})"
            yield f"  {option['flag']}: {option['help']}{default}"


def _test(test: str, cases: list[Mapping[str, Any]]) -> Iterable[str]:
    names = list(dict.fromkeys(case["case"] for case in cases if case["case"]))
    shown = ", ".join(names[:6]) + (f", and {len(names) - 6} more" if len(names) > 6 else "")
    roles = sorted({case["control"] for case in cases if case["control"]})
    control = f" [{' and '.join(roles)} control]" if roles else ""
    yield f"  {test.removeprefix('test_')}{control}: {len(cases)} case{'' if len(cases) == 1 else 's'}: {shown}"
    needs = sorted({need for case in cases for need in case["needs"]})
    if needs:
        yield f"      needs: {', '.join(needs)}"
    for reason in dict.fromkeys(case["skip"] for case in cases if case["skip"]):
        yield f"      skips {sum(case['skip'] == reason for case in cases)}: {reason}"
