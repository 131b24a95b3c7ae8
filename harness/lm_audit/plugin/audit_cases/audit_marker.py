"""The audit that cases belong to: the marker that they bear, else the one that their file's place tells."""

from __future__ import annotations

import re

import pytest

from lm_audit.audits.registry import GROUP, audit_packages
from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.case import CaseSource
from lm_audit.plugin.audit_cases.markers import MARKERS, audit_of
from lm_audit.plugin.options.run_options import RunOptions

_WORDS_OF_AN_EXPRESSION = {"and", "or", "not", "True", "False"}


def audit_by_place(module: str, stem: str) -> str | None:
    """The audit whose package holds the module, or after which a file is called: ``test_bias.py`` belongs to bias."""
    packages = audit_packages()
    inside = (name for name, package in packages.items() if module == package or module.startswith(f"{package}."))
    called = stem.removeprefix("test_")
    return next(inside, called if called in packages else None)


def missing_audit_marker(metafunc: pytest.Metafunc) -> str | None:
    """The audit marker that a test with cases does not bear and that its place tells; ``None`` where it bears one."""
    definition = metafunc.definition
    if audit_of(definition) is not None:
        return None
    return audit_by_place(metafunc.module.__name__, definition.path.stem)


def require_marker(metafunc: pytest.Metafunc, source: CaseSource, options: RunOptions) -> None:
    """``UsageError`` where ``-m`` asks for an audit and these cases belong to none: it could never select them."""
    expression = metafunc.config.getoption("markexpr", "") or ""
    asked = set(re.findall(r"(?<!not )\b[\w-]+", expression)) - _WORDS_OF_AN_EXPRESSION
    names = set(audit_packages())
    unknown = asked - set(MARKERS) - _registered(metafunc.config)
    if not (asked & names or unknown) or audit_of(metafunc.definition) is not None:
        return
    if any(names.intersection(case.marks) for case in source.cases(options)):
        return
    raise UsageError(
        f"the cases in {metafunc.definition.path.name} bear no audit marker, so -m {expression!r} can never select "
        f"them; put `pytestmark = pytest.mark.AUDIT` at the top of the file, AUDIT being one of "
        f"{', '.join(sorted(names))} (an audit is a package in lm_audit/audits, or one that an entry point of the "
        f"group {GROUP} names)"
    )


def _registered(config: pytest.Config) -> set[str]:
    return {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
