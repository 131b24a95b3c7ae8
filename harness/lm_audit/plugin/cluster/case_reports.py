"""What workers tell of their cases, told to pytest once a case, whatever becomes of the workers.

The reports of an attempt are held until its worker says that it is over. So what a worker that is lost in a case had
told of it is told by nobody, and the case is counted once though it runs again; and a case whose end has come, in its
reports or in the worker's ledger, is never given again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lm_audit.plugin.cluster.member import Attempt, Member, reporting_node
from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.parallel.affinity_scheduling import unrun_report
from lm_audit.plugin.parallel.crashes import planned_ids, record_end, recorded_end
from lm_audit.plugin.record.audit_session import AuditSession
from lm_audit.plugin.session.case_timeout import traces_file

ATTEMPTS = 2
"""How often a case is given to a worker that dies of it."""


class CaseReports:
    """Reports of the cases of a run in the controller's session."""

    def __init__(
        self, session: pytest.Session, audit: AuditSession, queue: AffinityQueue, place: Callable[[Member], str]
    ):
        """``place`` is the name of a worker's node."""
        self._config, self._hook = session.config, session.config.hook
        self._audit, self._queue, self._place = audit, queue, place
        self._index = {item.nodeid: index for index, item in enumerate(session.items)}
        self._deaths: Counter[str] = Counter()
        self._skipped: set[str] = set()
        self._dropped = 0

    # ---- an attempt, as its worker tells of it

    def started(self, member: Member, case: str, number: int, location: object) -> None:
        """A case begins; also once more where the session itself runs it again."""
        if member.running is None:
            member.running = Attempt(case, number)
        self._hook.pytest_runtest_logstart(nodeid=case, location=location)

    def report(self, member: Member, data: dict[str, Any]) -> None:
        """A phase of the running case is over."""
        report = self._hook.pytest_report_from_serializable(config=self._config, data=data)
        if member.unwritten is not None and report.when == "teardown":
            report.outcome, report.longrepr = "failed", f"StoreError: {member.unwritten}"
            member.unwritten = None
        if member.running is not None:
            member.running.reports.append(report)

    def finished(self, member: Member, case: str, location: object) -> None:
        """All reports of the case have come."""
        self._tell_held(member)
        if member.running is not None:
            member.running.over = True
        self._hook.pytest_runtest_logfinish(nodeid=case, location=location)

    def done(self, member: Member, case: str, seconds: float) -> None:
        """The case is over, and took so many seconds."""
        self._tell_held(member)
        self._over(member, case, None if case in self._skipped else seconds)

    def not_there(self, member: Member, case: str) -> None:
        """The worker has no such case."""
        why = "has collected no such case: name the files that it needs with --ray-ship"
        self._over(member, case, None)
        self._hook.pytest_runtest_logreport(report=unrun_report(case, f"{self._where(member)} {why}"))

    def _where(self, member: Member) -> str:
        return f"worker {member.name!r} on {self._place(member)}"

    def _over(self, member: Member, case: str, seconds: float | None) -> None:
        member.given.pop(case, None)
        member.running = None
        self._queue.done(member, case, seconds)

    def _tell_held(self, member: Member) -> None:
        if member.running is None:
            return
        held, member.running.reports = member.running.reports, []
        for report in held:
            if report.skipped or getattr(report, "lm_audit_resumed", False):
                self._skipped.add(report.nodeid)
            self._tell(member, report)

    def _tell(self, member: Member, report: Any) -> None:
        report.node = reporting_node(member.name, self._place(member))
        report.worker_id, report.item_index = member.name, self._index.get(report.nodeid, -1)
        self._hook.pytest_runtest_logreport(report=report)

    # ---- an attempt whose worker is lost

    def lost(self, member: Member, how: str) -> str | None:
        """A worker died: its running case is over if its end has come, else tried once more, else it crashed.

        What of it is for the terminal, None where there is nothing to say.
        """
        self._settle(member)
        attempt = member.running
        case = attempt.case if attempt is not None else None
        hung = case is not None and self._hung(member)
        if case is not None:
            self._deaths[case] += 1
        again = case is not None and not hung and self._deaths[case] < ATTEMPTS
        killer = self._queue.lost(member, started=case is not None, again=again).killer
        if case is None or killer is None:
            return None
        ended, _, printed = how.partition("\n")
        told = f"{self._where(member)} crashed while running {case!r} ({ended})"
        if not again and self._deaths[case] > 1:
            told += f"; it crashed {self._deaths[case]} workers"
        message = f"{told}\n{printed}".rstrip()
        if not again:
            self._crashed(member, case, message)
            return None
        if case in planned_ids(self._config):
            record_end(self._audit, case, member.name, "crashed", message)
        return f"{told}; it is tried once more"

    def _settle(self, member: Member) -> None:
        """Tell how the cases ended whose end is known though the worker did not live to say so."""
        while held := self._queue.held(member):
            case = held[0].case
            attempt = member.running or Attempt(case, member.given[case])
            if not attempt.complete:
                # What is missing of the reports of a case whose end is on record is made of it by CrashRecorder.
                if recorded_end(self._audit, member.name, case) is None:
                    return
                self._tell_held(member)
                self._crashed(member, case, "")
            self._tell_held(member)
            self._over(member, case, None)

    # ---- cases that no worker is given

    def tell_dropped(self) -> None:
        """Report what the queue has given up since."""
        dropped = self._queue.dropped[self._dropped :]
        self._dropped += len(dropped)
        for entry in dropped:
            self._hook.pytest_runtest_logreport(report=unrun_report(entry.work.case, entry.reason))

    def drop_silently(self, reason: str) -> None:
        """Give up all that is queued: the run was stopped on purpose."""
        self._queue.drop_queued(reason)
        self._dropped = len(self._queue.dropped)

    def _crashed(self, member: Member, case: str, message: str) -> None:
        path = case.split("::", 1)[0]
        report = pytest.TestReport(
            nodeid=case,
            location=(path, None, path),
            keywords={},
            outcome="failed",
            longrepr=message,
            when="???",  # type: ignore[arg-type]
        )
        self._tell(member, report)

    def _hung(self, member: Member) -> bool:
        """Whether the worker ended by ``--case-timeout``: a case that hangs once is not given another hour."""
        file = traces_file(self._audit, member.name)
        return file.is_file() and file.stat().st_size > 0
