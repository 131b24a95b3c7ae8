"""The audits that are installed, with their cases as pytest collects them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, get_args

import pytest

from lm_audit.audits.registry import audit_packages
from lm_audit.errors import UsageError
from lm_audit.planning.collecting import words_of
from lm_audit.plugin.audit_cases.case import source_of
from lm_audit.plugin.audit_cases.markers import audit_of, control_role
from lm_audit.plugin.audit_cases.selection import Selection, is_audit_case, selection_of
from lm_audit.plugin.options.audit_options import audit_options, option_owners
from lm_audit.plugin.options.run_options import Size


def catalogue(arguments: Sequence[str]) -> dict[str, Any]:
    """Every audit of the selection that ``pytest ARGUMENTS`` would make, as plain JSON.

    ``{"sizes": {size: cases}, "audits": [{"audit", "about", "package", "page", "options", "cases": [{"case_id", "test",
    "case", "model", "control", "needs", "cost", "skip"}]}]}``; the cases are those of ``--size``. Raises
    ``UsageError`` with pytest's own words where the cases cannot be collected.
    """
    cases = _collected(arguments)
    named = [word.partition("=")[2] or after for word, after in _pairs(arguments) if word.partition("=")[0] == "--size"]
    own = named[-1] if named else "smoke"
    sizes = {
        size: len(cases) if size == own else len(_collected([*arguments, "--size", size])) for size in get_args(Size)
    }
    audits = [
        {
            "audit": audit,
            "about": _about(package),
            "package": package,
            # Other distributions have their pages elsewhere.
            "page": f"docs/{audit}.md" if package == f"lm_audit.audits.{audit}" else None,
            "options": [
                {"flag": option.flag, "help": option.help, "default": option.default, "choices": option.choices}
                for option in audit_options()
                if audit in option_owners()[option.name]
            ],
            "cases": [case for case in cases if case["audit"] == audit],
        }
        for audit, package in audit_packages().items()
    ]
    return {"sizes": sizes, "audits": [entry for entry in audits if entry["cases"]]}


def _pairs(arguments: Sequence[str]) -> Iterable[tuple[str, str]]:
    return zip(arguments, [*arguments[1:], ""], strict=True)


def _about(package: str) -> str:
    return (import_module(package).__doc__ or "").strip().partition("\n")[0]


def _collected(arguments: Sequence[str]) -> list[Mapping[str, Any]]:
    looking = _Looking()
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = pytest.main([*arguments, "--collect-only", "-q", "-p", "no:cacheprovider"], plugins=[looking])
    # A word that names neither option nor file is a usage error, and selects nothing.
    if code == pytest.ExitCode.NO_TESTS_COLLECTED or (looking.found == [] and code == pytest.ExitCode.USAGE_ERROR):
        return []
    # Unknown markers are told after all cases were collected as if there were no -m.
    if looking.found is None or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise UsageError(f"the cases cannot be collected:\n{words_of(told.getvalue())}")
    return looking.found


class _Looking:
    """Looks at what was collected."""

    def __init__(self) -> None:
        self.found: list[Mapping[str, Any]] | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Describe the audit cases."""
        self.found = [_described(item) for item in session.items if is_audit_case(item)]


def _described(item: pytest.Item) -> dict[str, Any]:
    selection = selection_of(item) or Selection()
    case = selection.case
    skip = item.get_closest_marker("skip")
    source = source_of(getattr(item, "function", None))
    return {
        "case_id": item.nodeid,
        "audit": audit_of(item),
        "test": getattr(item, "originalname", item.name),
        "case": case.id if case else "",
        "model": selection.model.name if selection.model else None,
        "control": control_role(item, selection.control),
        "needs": [str(need) for need in source.needed(case)] if source and selection.model else [],
        "cost": case.cost if case else 1.0,
        "skip": None if skip is None else str(skip.kwargs.get("reason") or (skip.args[0] if skip.args else "skipped")),
    }
