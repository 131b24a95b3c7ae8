"""The cases that a call of pytest would run, with the designs that their audits declare; nothing runs or loads."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

import pytest

from lm_audit.audits.design import Design
from lm_audit.audits.registry import audit_packages
from lm_audit.errors import HarnessError, UsageError
from lm_audit.gates.gate import Gate
from lm_audit.planning.known_model import KnownModel
from lm_audit.plugin.audit_cases.markers import audit_of, control_role
from lm_audit.plugin.audit_cases.selection import Selection, is_audit_case, selection_of
from lm_audit.plugin.record.audit_session import audit_session


@dataclass(frozen=True)
class PlannedDesign:
    """A design with the case that will record it."""

    case_id: str
    audit: str
    model: str | None
    design: Design


@dataclass(frozen=True)
class Collected:
    """What a call would measure: its designs, its gates, its size or limit, how many cases skip, which are refused.

    ``refused`` maps the ids of cases that the model's tokenizer cannot serve to the error in which they would end.
    """

    designs: tuple[PlannedDesign, ...]
    gates: tuple[Gate, ...]
    size: str
    cases: int
    skipped: int
    undeclared: tuple[str, ...]
    limit: int | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


def collect(arguments: Sequence[str]) -> Collected:
    """Collect as ``pytest ARGUMENTS`` would; ``UsageError`` with pytest's own words where that fails."""
    planner = _Planner()
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        code = pytest.main([*arguments, "--collect-only", "-q", "-p", "no:cacheprovider"], plugins=[planner])
    if planner.found is None and code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise UsageError("no case is selected; name other -m or -k")
    # Unknown markers are told after all cases were collected as if there were no -m.
    if planner.found is None or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise UsageError(f"the cases cannot be collected:\n{words_of(told.getvalue())}")
    return planner.found


def words_of(told: str) -> str:
    """What pytest says of a call that it refuses, without the list of cases that may stand before it."""
    return "\n".join(line for line in told.splitlines() if not _CASE.fullmatch(line)).strip()


_CASE = re.compile(r"\S+\.py::\S+")


class _Planner:
    """Looks at what was collected."""

    def __init__(self) -> None:
        self.found: Collected | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Ask the audits for the designs of their cases."""
        items = [item for item in session.items if is_audit_case(item)]
        if not items:
            return
        audit = audit_session(session.config)
        measuring = [item for item in items if not _is_control(item)]
        known = [KnownModel(audit, selection_of(item) or Selection()) for item in measuring]
        refused: dict[str, str] = {}
        running = [(item, model) for item, model in zip(measuring, known, strict=True) if _runs(item, model, refused)]
        designs = [entry for item, model in running for entry in _designs(item, model)]
        told = {entry.case_id for entry in designs}
        self.found = Collected(
            designs=tuple(designs),
            gates=audit.gates,
            size=audit.options.size,
            cases=len(running),
            skipped=len(measuring) - len(running) - len(refused),
            limit=audit.options.limit,
            undeclared=tuple(item.nodeid for item, _ in running if item.nodeid not in told),
            refused=refused,
        )


def _is_control(item: pytest.Item) -> bool:
    return control_role(item, (selection_of(item) or Selection()).control) is not None


def _runs(item: pytest.Item, model: KnownModel, refused: dict[str, str]) -> bool:
    """Whether a case will measure; one that its own check refuses is added to ``refused``."""
    try:
        return not item.get_closest_marker("skip") and not model.skips()
    except HarnessError as error:
        refused[item.nodeid] = str(error)
        return False


def _designs(item: pytest.Item, model: KnownModel) -> Iterable[PlannedDesign]:
    audit, selection = audit_of(item), model.selection
    home = _home(audit) if audit is not None else None
    if audit is None or home is None:
        return
    test = getattr(item, "originalname", item.name)
    params = selection.case.params if selection.case else {}
    for design in import_module(home).designs(test, params, model):
        yield PlannedDesign(item.nodeid, audit, selection.model.name if selection.model else None, design)


def _home(audit: str) -> str | None:
    """The module in which an audit declares its designs, None where it declares none."""
    package = audit_packages().get(audit)
    if package is None:
        return None
    name = f"{package}.planning"
    try:
        return name if find_spec(name) is not None else None
    except ModuleNotFoundError:
        return None
