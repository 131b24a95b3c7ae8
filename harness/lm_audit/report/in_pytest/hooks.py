"""The report's part in a pytest run: ``--baseline``, tags, exporters, Allure, and the index of all runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.errors import HarnessError, UsageError
from lm_audit.plugin.options.naming import declare
from lm_audit.plugin.record.audit_session import SESSION, AuditSession, reports_folder
from lm_audit.report.exporters import TARGETS, check_installed
from lm_audit.shared.names import readable

if TYPE_CHECKING:
    from lm_audit.report.in_pytest.allure_files import AllureFiles

_LINES: pytest.StashKey[list[str]] = pytest.StashKey()
_BEFORE: pytest.StashKey[Path] = pytest.StashKey()
"""The folder of ``--baseline``."""
_ALLURE: pytest.StashKey[AllureFiles] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register what the report can do at the end of a run."""
    group = parser.getgroup("lm-audit", "audits of language models")
    declare(
        group,
        "--baseline",
        dest="lm_audit_baseline",
        metavar="RUN",
        help="compare with this run (id, folder or latest) at the end; a significant regression fails the call",
    )
    declare(
        group,
        "--tag",
        dest="lm_audit_tag",
        action="append",
        type=readable,
        metavar="TEXT",
        help="a word that the index of all runs shows and filters by; repeatable",
    )
    declare(
        group,
        "--export",
        dest="lm_audit_export",
        action="append",
        choices=TARGETS,
        help="send metrics and report there at the end; repeatable",
    )
    declare(
        group,
        "--plots",
        dest="lm_audit_plots",
        action="store_true",
        help="write each chart as PNG and SVG into the run folder's plots/",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Find the baseline and the libraries of exporters before anything runs."""
    try:
        for target in config.getoption("lm_audit_export") or ():
            check_installed(target)
    except HarnessError as error:
        raise pytest.UsageError(f"--export {target}: {error}") from error
    baseline = config.getoption("lm_audit_baseline")
    if baseline and not hasattr(config, "workerinput"):
        from lm_audit.runstore.named import find_run

        try:
            # Once, and now: when this run has ended, it is the latest itself.
            found = config.stash[_BEFORE] = find_run(baseline, reports_folder(config))
            resumed = config.getoption("lm_audit_resume")
            if resumed and find_run(resumed, reports_folder(config)) == found:
                raise UsageError(f"{baseline} is the run that --resume {resumed} continues; name another")
        except HarnessError as error:
            raise pytest.UsageError(f"--baseline: {error}") from error


def pytest_lm_audit_planned(session: pytest.Session) -> None:
    """Keep a full disk under ``--alluredir`` from ending the run."""
    if session.config.getoption("allure_report_dir", None):
        from allure_commons import plugin_manager

        from lm_audit.report.in_pytest.allure_files import AllureFiles

        files = session.config.stash[_ALLURE] = AllureFiles()
        plugin_manager.register(files)
        session.config.add_cleanup(lambda: plugin_manager.unregister(files))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """After the run was written: complete Allure's results, compare, export. A failure here costs no data."""
    try:
        return (yield)
    finally:
        _complete(session)


def _complete(session: pytest.Session) -> None:
    config = session.config
    audit = config.stash.get(SESSION, None)
    if audit is not None and audit.recorded and not audit.is_worker:
        lines = config.stash.setdefault(_LINES, [])
        for what, step in _STEPS.items():
            try:
                lines += step(session, audit)
            except Exception as error:
                lines.append(f"{what}: {_told(error)}")
                if step is _baseline:  # Nobody knows whether something got worse: that is no success.
                    _fail(session, audit)


def _told(error: Exception) -> str:
    if isinstance(error, HarnessError):
        return str(error)
    return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"


def _fail(session: pytest.Session, audit: AuditSession) -> None:
    if not audit.report_only and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _allure(session: pytest.Session, audit: AuditSession) -> list[str]:
    folder = session.config.getoption("allure_report_dir", None)
    if not folder:
        return []
    from pathlib import Path

    from lm_audit.report.allure.results import complete_results
    from lm_audit.runstore.run import read_run

    complete_results(read_run(audit.folder.path, shown=True), Path(folder))
    refused = session.config.stash[_ALLURE].refused
    return [f"{len(refused)} files of allure-pytest could not be written: {_told(refused[0])}"] if refused else []


def _index(session: pytest.Session, audit: AuditSession) -> list[str]:
    from lm_audit.report.index.all_runs import write_index

    write_index(audit.folder.path.parent)
    return []


def _plots(session: pytest.Session, audit: AuditSession) -> list[str]:
    if not session.config.getoption("lm_audit_plots", False):
        return []
    from lm_audit.report.charts.plots import plots_line

    return [plots_line(audit.folder.path)]


def _export(session: pytest.Session, audit: AuditSession) -> list[str]:
    from lm_audit.report.exporters import export

    return [export(target, audit.folder.path) for target in session.config.getoption("lm_audit_export") or ()]


def _baseline(session: pytest.Session, audit: AuditSession) -> list[str]:
    baseline = session.config.stash.get(_BEFORE, None)
    if baseline is None:
        return []
    from lm_audit.report.comparison.page import render_comparison
    from lm_audit.report.comparison.runs import compare_runs
    from lm_audit.report.comparison.text import comparison_lines
    from lm_audit.report.writing.of_run import write_text
    from lm_audit.runstore.run import read_run

    before = read_run(baseline)
    comparison = compare_runs(before, read_run(audit.folder.path), seed=audit.options.seed)
    if comparison.failed:
        _fail(session, audit)
    writer = session.config.get_terminal_writer()
    lines = comparison_lines(comparison, width=writer.fullwidth, color=writer.hasmarkup)
    try:
        page = str(write_text(audit.folder.path / "baseline.html", render_comparison(comparison)))
    except OSError as error:
        page = f"its page could not be written: {_told(error)}"
    return ["baseline:", *lines, f"comparison: {page}"]


_STEPS: Mapping[str, Callable[[pytest.Session, AuditSession], list[str]]] = {
    "the results for Allure could not be completed": _allure,
    "the index of all runs could not be written": _index,
    "the charts could not be written to plots/": _plots,
    "the export failed": _export,
    "the comparison with the baseline could not be made": _baseline,
}
"""What is done with a finished run, by what is said where it fails."""


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how the run compares with its baseline, and what could not be done."""
    for line in config.stash.get(_LINES, []):
        terminalreporter.write_line(line)
