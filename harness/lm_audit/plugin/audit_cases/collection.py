"""Turns models, devices and cases into test items with stable ids."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lm_audit.errors import HarnessError, beyond_context
from lm_audit.models.capabilities import Capability, missing
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.plugin.audit_cases.audit_marker import missing_audit_marker, require_marker
from lm_audit.plugin.audit_cases.case import Case, CaseSource, source_of
from lm_audit.plugin.audit_cases.selection import Selection, is_audit_case, selection_of
from lm_audit.plugin.models.devices import absent, kind_of
from lm_audit.plugin.models.endpoints import DEVICE, offers_of
from lm_audit.plugin.models.known import known_context
from lm_audit.plugin.options.model_choice import ModelChoice, parse_choice
from lm_audit.plugin.record.audit_session import AuditSession, audit_session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its combined parameter, ``MODEL@DEVICE-case``."""
    if "lm_audit_case" not in metafunc.fixturenames:
        return
    source = source_of(metafunc.function)
    on_model = "language_model" in metafunc.fixturenames
    if source is None and not on_model:
        return
    try:
        session = audit_session(metafunc.config)
        audit = missing_audit_marker(metafunc) if source is not None else None
        if source is not None and audit is None:
            require_marker(metafunc, source, session.options)
        selections = list(_selections(source, on_model, session))
    except HarnessError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from error
    metafunc.parametrize(
        "lm_audit_case",
        [_parameter(selection, session, audit) for selection in selections],
        indirect=True,
        ids=[selection.id for selection in selections],
    )


def _selections(source: CaseSource | None, on_model: bool, session: AuditSession) -> Iterable[Selection]:
    options = session.options
    found: list[Case | None] = [*source.cases(options)] if source is not None else [None]
    if not on_model:
        yield from (Selection(case, source=source) for case in found)
        return
    for case in found:
        pinned = case is not None and case.model is not None
        models = _models(case, options.models)
        for model in models:
            for device in (DEVICE,) if is_endpoint(model.spec) else options.devices:
                yield Selection(case, model, device, pinned, source)


def _models(case: Case | None, models: tuple[ModelChoice, ...]) -> tuple[ModelChoice, ...]:
    return (parse_choice(case.model),) if case is not None and case.model is not None else models


def _parameter(selection: Selection, session: AuditSession, audit: str | None) -> object:
    marks: list[pytest.MarkDecorator] = [getattr(pytest.mark, audit)] if audit is not None else []
    case = selection.case
    if selection.device is not None:
        marks.append(getattr(pytest.mark, kind_of(selection.device)))
    if case is not None:
        marks += [getattr(pytest.mark, name) for name in case.marks]
        if case.control:
            marks.append(pytest.mark.control)
        if case.skip:
            marks.append(pytest.mark.skip(reason=case.skip))
    lacking = missing_capability(selection, session)
    if lacking:
        marks.append(pytest.mark.skip(reason=lacking))
    beyond = too_long(selection, session)
    if beyond:
        marks.append(pytest.mark.skip(reason=beyond))
    gone = missing_device(selection, session)
    if gone and kind_of(selection.device or "") not in session.required:
        marks.append(pytest.mark.skip(reason=gone))
    return pytest.param(selection, marks=marks)


def missing_capability(selection: Selection, session: AuditSession) -> str | None:
    """What the case needs and its model does not offer, None where nothing is missing."""
    if selection.model is None:
        return None
    needs = tuple(Capability) if selection.source is None else selection.source.needed(selection.case)
    lacking = missing(needs, offers_of(session, selection.model))
    return None if lacking is None else f"model {selection.model.name} does not offer: {lacking}"


def too_long(selection: Selection, session: AuditSession) -> str | None:
    """Why the case is too long for its model, as its files or its server say; None where it fits or nobody says."""
    case, model = selection.case, selection.model
    if case is None or case.tokens is None or model is None:
        return None
    context = known_context(session, model)
    if context is None or case.tokens <= context:
        return None
    advice = "leave it out, or ask a model that reads more"
    return beyond_context("the case with its answer", case.tokens, f"model {model.name}", context, advice)


def missing_device(selection: Selection, session: AuditSession) -> str | None:
    """Why the selection cannot run on this machine, None where it can."""
    if selection.device is None or selection.device == DEVICE:
        return None
    return absent(selection.device, session.present)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """``--require-device``: what would skip for want of the device fails."""
    selection = selection_of(item)
    gone = missing_device(selection, audit_session(item.config)) if selection is not None else None
    if gone:
        pytest.fail(f"--require-device {kind_of(selection.device or '') if selection else ''}: {gone}", pytrace=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the cases of one model after another, so that it is loaded once; skip slow audits at the smoke size."""
    audits = [item for item in items if is_audit_case(item)]
    if not audits:
        return
    session = audit_session(config)
    if session.options.size == "smoke":
        for item in audits:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: runs at --size standard or full"))
    _group_by_model(items, audits)


def _group_by_model(items: list[pytest.Item], audits: list[pytest.Item]) -> None:
    first: dict[str, int] = {}
    for item in audits:
        first.setdefault(_model_key(item), len(first))
    if len(first) < 2:
        return
    ours = {id(item) for item in audits}
    ordered = iter(sorted(audits, key=lambda item: first[_model_key(item)]))
    items[:] = [next(ordered) if id(item) in ours else item for item in items]


def _model_key(item: pytest.Item) -> str:
    selection = selection_of(item)
    return f"{selection.model.name}@{selection.device}" if selection and selection.model else ""
