"""Which cases a worker of a cluster is sent, and when."""

from __future__ import annotations

from collections import Counter

import pytest

from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.cluster.case_reports import CaseReports
from lm_audit.plugin.cluster.crew import Crew
from lm_audit.plugin.cluster.member import Member
from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.record.audit_session import AuditSession
from lm_audit.plugin.record.fingerprints import case_fingerprint

SHORT_S = 0.5
"""A case that is expected to be over sooner is sent before its worker needs it: asking for it would take as long."""


class Feeder:
    """Sends the workers cases from the queue, each with the number of its attempt."""

    def __init__(
        self, session: pytest.Session, audit: AuditSession, queue: AffinityQueue, crew: Crew, reports: CaseReports
    ):
        self._audit, self._queue, self._crew, self._reports = audit, queue, crew, reports
        self._items = {item.nodeid: item for item in session.items}
        self._attempts: Counter[str] = Counter(audit.attempts)

    def feed(self, member: Member) -> None:
        """Keep a worker busy: the case that it runs, and the next one of its model as long as others have enough.

        A session begins a case once it knows what follows it; of short cases two follow the one that runs.
        """
        if member.ending:
            return
        if not self._queue.held(member):
            work = self._queue.take(member)
            if work is None:
                member.ending = True
                member.outbox.append(("end",))
                self._queue.lost(member, started=False)
                self._reports.tell_dropped()
                return
            self._send(member, work.case)
        spare = sum(not other.ready for other in self._crew.members)
        while len(held := self._queue.held(member)) < (3 if self._queue.costs.case(held[-1].case) < SHORT_S else 2):
            work = self._queue.take_ahead(member, spare=spare)
            if work is None:
                if len(held) == 1:
                    member.outbox.append(("alone",))
                return
            self._send(member, work.case)

    def _send(self, member: Member, case: str) -> None:
        self._attempts[case] += 1
        member.given[case] = self._attempts[case]
        item = self._items[case]
        fingerprint = case_fingerprint(item, self._audit.options) if is_audit_case(item) else ""
        member.outbox.append(("run", case, self._attempts[case], fingerprint))
