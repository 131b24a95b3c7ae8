"""The fixtures that eval files use."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.case import Case
from lm_audit.plugin.audit_cases.selection import Selection
from lm_audit.plugin.compat import verbosity
from lm_audit.plugin.models.endpoints import TRAFFIC_PROPERTY, spent
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.record.audit_session import audit_session

if TYPE_CHECKING:
    from lm_audit.audits.measured_once import MeasuredOnce
    from lm_audit.models import LanguageModel
    from lm_audit.plugin.models.store import ModelStore
    from lm_audit.plugin.record.evidence_fixture import Recorder


@pytest.fixture
def lm_audit_case(request: pytest.FixtureRequest) -> Selection:
    """The combined parameter: case, model and device."""
    selection = getattr(request, "param", None)
    return selection if isinstance(selection, Selection) else Selection()


@pytest.fixture
def case(lm_audit_case: Selection) -> Case:
    """The case that runs; its ``params`` say what to do."""
    if lm_audit_case.case is None:
        raise UsageError("the fixture 'case' needs a test with cases: decorate it with @cases(...)")
    return lm_audit_case.case


@pytest.fixture
def device(lm_audit_case: Selection, run_options: RunOptions) -> str:
    """The device that the case runs on."""
    return lm_audit_case.device or run_options.device


@pytest.fixture(scope="session")
def run_options(request: pytest.FixtureRequest) -> RunOptions:
    """The options of the run."""
    return audit_session(request.config).options


@pytest.fixture(scope="session")
def audit_seed(run_options: RunOptions) -> int:
    """The seed of everything random in the run (``--seed``)."""
    return run_options.seed


@pytest.fixture(scope="session")
def measured_once(tmp_path_factory: pytest.TempPathFactory) -> MeasuredOnce:
    """Measures one whole for all cases that show a part of it: ``measured_once(model, what, measure)``."""
    from lm_audit.audits.measured_once import MeasuredOnce

    base = tmp_path_factory.getbasetemp()
    # A worker's own folder lies in that of the session.
    return MeasuredOnce((base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "measured-once")


@pytest.fixture(scope="session")
def lm_audit_models(run_options: RunOptions, request: pytest.FixtureRequest) -> ModelStore:
    """The models that this process has loaded."""
    from lm_audit.plugin.models.store import ModelStore

    workers = getattr(request.config, "workerinput", {}).get("workercount", 1)
    return ModelStore(audit_session(request.config), workers)


@pytest.fixture
def language_model(
    lm_audit_case: Selection, lm_audit_models: ModelStore, request: pytest.FixtureRequest
) -> Generator[LanguageModel]:
    """The model under audit, loaded on the case's device."""
    from lm_audit.plugin.progress.progress_reports import REPORTER
    from lm_audit.plugin.record.attempts import current_recorder

    lm_audit_models.preflight(lm_audit_case)
    model = lm_audit_models.model(lm_audit_case)
    current_recorder(request.node).loaded(model, lm_audit_case)
    reporter = request.config.stash[REPORTER]
    model.on_progress = reporter.update
    before, traffic, told = model.provenance(), model.traffic, model.told
    reporter.now.served = traffic is not None
    yield model
    model.on_progress = None
    if model.told != told:
        current_recorder(request.node).loaded(model, lm_audit_case)
    for name, value in spent(before, model.provenance()).items():
        current_recorder(request.node).recorder.parameter(name, value)
    if traffic is not None and model.traffic is not None and verbosity(request.config) > 0:
        request.node.user_properties.append((TRAFFIC_PROPERTY, model.traffic.since(traffic).told))


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> Recorder:
    """Takes down what the case measures: ``evidence.metric(name, estimate)``, ``.rows(...)``, ``.figure(...)``."""
    from lm_audit.plugin.progress.progress_reports import REPORTER
    from lm_audit.plugin.record.attempts import current_recorder

    recorder = current_recorder(request.node).recorder
    recorder.on_progress = request.config.stash[REPORTER].update
    return recorder
