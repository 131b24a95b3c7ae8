"""``lm-audit list``: audits, cases, what they need, sizes and options."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lm_audit.errors import UsageError
from lm_audit.planning.asking import add_question

_DESCRIPTION = """Lists the audits with their cases, what a case needs of a model, how many cases each size has, and the
audits' options. The arguments are those of lm-audit run: -m, -k, --size, --model, --data. --json prints the same as
JSON. Nothing is run and no model is loaded."""


def register(subparsers: Any) -> None:
    """Add ``list``."""
    add_question(
        subparsers,
        "list",
        answer,
        help="audits, cases, what they need, sizes and options",
        description=_DESCRIPTION,
        options="[-m MARKERS] [-k WORDS] [--size SIZE] [--model SPEC]",
    )


def answer(given: Sequence[str], wants_json: bool) -> int:
    """Print the list; 0. Raises ``UsageError`` where the arguments select nothing at any size."""
    from lm_audit.planning.catalogue import catalogue
    from lm_audit.plugin.audit_cases.suite import suite_call

    found = catalogue(suite_call(given))
    if not any(found["sizes"].values()):
        raise UsageError(f"{' '.join(given) or 'this'} selects no case; audits are picked by -m: lm-audit list -m bias")
    if wants_json:
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
        yield f"{audit['audit']}: {audit['about']}  ({audit['page'] or 'package ' + audit['package']})"
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
