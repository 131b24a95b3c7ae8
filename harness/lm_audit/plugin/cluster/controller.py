"""Controller: a run on a cluster from its first worker to its last; what is lost is tried once more elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.selection import is_audit_case
from lm_audit.plugin.case_timeout import traces_file
from lm_audit.plugin.cluster.cluster import Cluster, WorkerLost
from lm_audit.plugin.cluster.kinds import Demand
from lm_audit.plugin.cluster.member import Member, differences, reporting_node
from lm_audit.plugin.cluster.mirror import Piece
from lm_audit.plugin.cluster.orders import Message, Order, Ready
from lm_audit.plugin.cluster.places import Places, shown_resources
from lm_audit.plugin.cluster.written import Written
from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.parallel.crashes import planned_ids, record_end
from lm_audit.plugin.parallel.scheduler import unrun_report
from lm_audit.plugin.record.audit_session import AuditSession
from lm_audit.plugin.record.fingerprints import case_fingerprint

ATTEMPTS = 2
"""How often a case is given to a worker that dies of it."""

GROW_EVERY_S = 1.0
FAREWELL_S = 10.0
"""How long workers may take to end in order, and after an interrupt to hand over what they have written."""

CLOSE_S = 5.0
"""How long actors may take at the end of the run to remove what they have written on their nodes."""


class Controller:
    """Feeds the workers from the queue, and reports in this session what happens in theirs."""

    def __init__(
        self,
        session: pytest.Session,
        audit: AuditSession,
        queue: AffinityQueue,
        cluster: Cluster,
        demands: Sequence[Demand],
        order: Order,
    ):
        config = session.config
        self._session, self._audit, self._queue, self._cluster = session, audit, queue, cluster
        self._config, self._hook = config, config.hook
        self._demands, self._order = demands, order
        self._timeout: float = config.getoption("lm_audit_ray_timeout")
        self._places = Places(config.getoption("lm_audit_ray_workers"))
        self._items = {item.nodeid: item for item in session.items}
        self._index = {item.nodeid: index for index, item in enumerate(session.items)}
        self._members: list[Member] = []
        self._answers: dict[Any, tuple[Member, str]] = {}
        self._attempts: Counter[str] = Counter(audit.attempts)
        self._deaths: Counter[str] = Counter()
        self._skipped: set[str] = set()
        self._written = Written(audit.folder.path)
        self._reported = 0
        self._made = 0
        self._ever = False
        self._grown = 0.0
        self._alone_since = time.monotonic()
        self._terminal = config.pluginmanager.get_plugin("terminalreporter")
        if self._terminal is not None:
            self._terminal.showfspath = False  # Workers report in turns: a letter stands for itself.

    # ---- the run

    def run(self) -> None:
        """Run every case; raises what ends a session early (``-x``, a signal), once the workers are sent home."""
        try:
            while not self._finished():
                self._grow()
                self._take_in(0.5)
                self._check_stop()
                self._check_waiting()
            self._farewell()
        except (KeyboardInterrupt, pytest.Session.Interrupted):
            self._hand_over()
            raise
        finally:
            for member in list(self._members):
                self._dismiss(member)
            self._await_closed()

    def _finished(self) -> bool:
        return not self._queue.queued and not any(self._queue.held(node) for node in self._queue.nodes)

    def _check_stop(self) -> None:
        """``-x`` and its like: no further case begins, those that run end."""
        session = self._session
        if not (session.shouldfail or session.shouldstop):
            return
        self._queue.drop_queued("stopped")
        self._reported = len(self._queue.dropped)
        deadline = time.monotonic() + self._timeout
        while any(member.running for member in self._members) and time.monotonic() < deadline:
            self._take_in(0.5)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        raise session.Interrupted(session.shouldstop)

    # ---- workers come

    def _grow(self) -> None:
        """Ask for workers where there is room and the queue has something for them."""
        now = time.monotonic()
        if now - self._grown < GROW_EVERY_S:
            return
        self._grown = now
        self._places.seen(self._cluster.nodes())
        for demand in self._demands:
            coming = sum(not member.ready for member in self._members if member.demand is demand)
            while coming < self._queue.queued and self._may_grow(demand):
                node = self._places.next(demand.kind)
                if node is None:
                    break
                self._ask(demand, node)
                coming += 1
            # Without a node that has room a request is still made: a cluster that scales sees it and grows.
            if not coming and self._wanted_somewhere(demand) and not self._has_member(demand):
                self._ask(demand, None)

    def _may_grow(self, demand: Demand) -> bool:
        return self._queue.wants(refuses=demand.refuses | self._places.missing_everywhere(), modelless=demand.modelless)

    def _wanted_somewhere(self, demand: Demand) -> bool:
        return not self._good_nodes(demand) and self._may_grow(demand)

    def _has_member(self, demand: Demand) -> bool:
        return any(member.demand is demand for member in self._members)

    def _good_nodes(self, demand: Demand) -> list[str]:
        nodes = self._places.nodes.values()
        return [node.id for node in nodes if node.id not in self._places.bad and node.slots(demand.kind)]

    def _ask(self, demand: Demand, node: str | None) -> None:
        member = Member(f"ray{self._made}", demand, self._cluster.place(demand.kind, node), node, time.monotonic())
        self._made += 1
        self._members.append(member)
        if node is not None:
            self._places.took(member.name, node, demand.kind)
        self._expect(member, member.remote.hello(), "hello")

    def _expect(self, member: Member, answer: Any, what: str) -> None:
        self._answers[answer] = (member, what)

    # ---- answers come

    def _take_in(self, timeout_s: float) -> None:
        """Wait for answers and act on them."""
        for reference in self._cluster.wait(self._answers, timeout_s):
            member, what = self._answers.pop(reference)
            if what == "closed":
                member.remote.kill()
            if member not in self._members:
                continue
            try:
                content = self._cluster.answer(reference)
            except WorkerLost as error:
                self._lost(member, str(error), actor=True)
                continue
            if what == "hello":
                self._arrived(member, content["node"])
            elif what == "begun":
                self._expect(member, member.remote.exchange([]), "news")
            else:
                self._news(member, content)
        self._written.sync()

    def _arrived(self, member: Member, node: str) -> None:
        """The actor has a process: measure its clock, and have it start the session."""
        member.placed = True
        if member.node is None:
            member.node = node
            self._places.took(member.name, node, member.demand.kind)
            self._places.seen(self._cluster.nodes())
        if node in self._places.bad or not self._queue.queued:
            self._dismiss(member)
            return
        order = replace(
            self._order,
            worker=member.name,
            clock=self._clock(member),
            workers_of_node=self._places.share(node, member.demand.kind),
        )
        member.since = time.monotonic()
        self._expect(member, member.remote.begin(order), "begun")

    def _clock(self, member: Member) -> float:
        """This machine's monotonic clock less the node's, by the fastest of three questions.

        The time at which the question was sent stands for the time at which the node read its clock. So a node's
        records are dated never later than they were, and what the controller does because of them comes after them.
        """
        found: list[tuple[float, float]] = []
        for _ in range(3):
            asked = time.monotonic()
            reference = member.remote.clock()
            if not self._cluster.wait([reference], 10.0):
                break
            with suppress(WorkerLost):
                there = self._cluster.answer(reference)
                found.append((time.monotonic() - asked, asked - there))
        return min(found, default=(0.0, 0.0))[1]

    def _news(self, member: Member, messages: Sequence[Message]) -> None:
        for message in messages:
            getattr(self, f"_on_{message[0]}")(member, *message[1:])
            if member not in self._members:
                return
        if member.left:
            self._dismiss(member)
            return
        outbox, member.outbox = member.outbox, []
        self._expect(member, member.remote.exchange(outbox), "news")

    # ---- what a worker says

    def _on_piece(self, member: Member, piece: Piece) -> None:
        try:
            member.unwritten = self._written.take(piece) or member.unwritten
        except ValueError as error:
            self._lost(member, f"its session broke: {error}")

    def _on_ready(self, member: Member, ready: Ready) -> None:
        node = member.node or ""
        other = differences(ready)
        if other:
            self._reject(node, f"runs other code: {other}")
            return
        self._places.started(node)
        self._tell_missing(node, ready.missing)
        member.ready = self._ever = True
        self._queue.add_node(
            member,
            refuses=frozenset(member.demand.refuses) | set(ready.missing),
            modelless=member.demand.modelless,
            place=node,
        )
        self._feed(member)

    def _on_started(self, member: Member, case: str, location: Any) -> None:
        member.running = case
        self._hook.pytest_runtest_logstart(nodeid=case, location=location)

    def _on_report(self, member: Member, data: dict[str, Any]) -> None:
        report = self._hook.pytest_report_from_serializable(config=self._config, data=data)
        if member.unwritten is not None and report.when == "teardown":
            report.outcome, report.longrepr = "failed", f"StoreError: {member.unwritten}"
            member.unwritten = None
        if report.skipped or getattr(report, "lm_audit_resumed", False):
            self._skipped.add(report.nodeid)
        self._tell_report(member, report)

    def _on_finished(self, member: Member, case: str, location: Any) -> None:
        self._hook.pytest_runtest_logfinish(nodeid=case, location=location)

    def _on_done(self, member: Member, case: str, seconds: float) -> None:
        member.running = None
        self._queue.done(member, case, None if case in self._skipped else seconds)
        self._feed(member)

    def _on_unknown(self, member: Member, case: str) -> None:
        why = "has collected no such case: name the files that it needs with --ray-ship"
        report = unrun_report(case, f"{self._where(member)} {why}")
        self._queue.done(member, case, None)
        self._hook.pytest_runtest_logreport(report=report)
        self._feed(member)

    def _on_warning(self, member: Member, warning: Any, when: Any, nodeid: str, location: Any) -> None:
        self._hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": warning, "when": when, "nodeid": nodeid, "location": location}
        )

    def _on_failed(self, member: Member, text: str) -> None:
        if member.ready:
            self._lost(member, f"its session broke: {text}")
        else:
            self._reject(member.node or "", f"its session did not start: {text}")

    def _on_bye(self, member: Member) -> None:
        member.left = True
        if not member.ending:
            self._lost(member, "its session ended before its time")

    def _on_died(self, member: Member, how: str) -> None:
        if member.ending and not (member in self._queue.nodes and self._queue.held(member)):
            self._dismiss(member)
        else:
            self._lost(member, how)

    def _tell_report(self, member: Member, report: Any) -> None:
        report.node = reporting_node(member.name, self._places.name(member.node))
        report.worker_id, report.item_index = member.name, self._index.get(report.nodeid, -1)
        self._hook.pytest_runtest_logreport(report=report)

    # ---- work goes out

    def _feed(self, member: Member) -> None:
        """Keep a worker busy: the case that it runs, and the next one of its model as long as others have enough."""
        if member.ending:
            return
        if not self._queue.held(member):
            work = self._queue.take(member)
            if work is None:
                member.ending = True
                member.outbox.append(("end",))
                self._queue.lost(member, started=False)
                self._report_dropped()
                return
            self._send(member, work.case)
        if len(self._queue.held(member)) == 1:
            work = self._queue.take_ahead(member, spare=sum(not other.ready for other in self._members))
            if work is None:
                member.outbox.append(("alone",))
            else:
                self._send(member, work.case)

    def _send(self, member: Member, case: str) -> None:
        self._attempts[case] += 1
        item = self._items[case]
        fingerprint = case_fingerprint(item, self._audit.options) if is_audit_case(item) else ""
        member.outbox.append(("run", case, self._attempts[case], fingerprint))

    # ---- workers go

    def _lost(self, member: Member, how: str, *, actor: bool = False) -> None:
        """A worker died: what it was running is tried once more in another place, and then reported as crashed.

        Where not its session but the ``actor`` died, its node may have died as well, of which Ray tells much later.
        """
        self._forget(member)
        where, started = self._where(member), member.running is not None
        if member not in self._queue.nodes:
            if not member.ending:
                self._failed_start(member, how, actor)
            return
        case = member.running
        hung = case is not None and self._hung(member)
        if case is not None:
            self._deaths[case] += 1
        again = case is not None and not hung and self._deaths[case] < ATTEMPTS
        lost = self._queue.lost(member, started=started, again=again)
        if lost.killer is not None and case is not None:
            ended, _, printed = how.partition("\n")
            message = f"{where} crashed while running {case!r} ({ended})"
            if not again and self._deaths[case] > 1:
                message += f"; it crashed {self._deaths[case]} workers"
            if again:
                self._say(f"{message}; it is tried once more")
            message = f"{message}\n{printed}".rstrip()
            if again:
                if case in planned_ids(self._config):
                    record_end(self._audit, case, member.name, "crashed", message)
            else:
                self._crashed(member, case, message)
        self._report_dropped()

    def _hung(self, member: Member) -> bool:
        """Whether the worker ended by ``--case-timeout``: a case that hangs once is not given another hour."""
        file = traces_file(self._audit, member.name)
        return file.is_file() and file.stat().st_size > 0

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
        self._tell_report(member, report)

    def _failed_start(self, member: Member, how: str, actor: bool) -> None:
        node = member.node
        if not actor and node is not None:
            self._places.useless.add(node)
        if node is not None and node in self._places.nodes and self._places.failed(node, how):
            self._say(f"{self._places.name(node)} is given no cases: {how}")

    def _reject(self, node: str, why: str) -> None:
        """A node on which nothing can run."""
        if node not in self._places.bad:
            self._places.bad[node] = why
            self._places.useless.add(node)
            self._say(f"{self._places.name(node)} is given no cases: it {why}")
        for member in [member for member in self._members if member.node == node and not member.ready]:
            self._dismiss(member)

    def _tell_missing(self, node: str, missing: Any) -> None:
        if node in self._places.missing:
            return
        self._places.missing[node] = dict(missing)
        for group, reason in missing.items():
            self._say(f"{self._places.name(node)} is given no cases of {group}: {reason}")

    def _dismiss(self, member: Member) -> None:
        """Send a worker home."""
        if member in self._queue.nodes:
            self._queue.lost(member, started=False)
        self._forget(member)

    def _forget(self, member: Member) -> None:
        """It is no member any more: its actor ends once it has removed what it wrote on its node."""
        if member not in self._members:
            return
        self._members.remove(member)
        self._places.left(member.name)
        if member.placed:
            self._expect(member, member.remote.close(), "closed")
        else:
            member.remote.kill()

    def _await_closed(self) -> None:
        deadline = time.monotonic() + CLOSE_S
        closing = {reference: member for reference, (member, what) in self._answers.items() if what == "closed"}
        while closing and time.monotonic() < deadline:
            for reference in self._cluster.wait(closing, max(0.0, deadline - time.monotonic())):
                closing.pop(reference).remote.kill()
        for member in closing.values():
            member.remote.kill()

    # ---- waiting, and the end

    def _check_waiting(self) -> None:
        """Give up what no worker will ever take, and end a wait that is too long."""
        now = time.monotonic()
        for member in self._members:
            if not member.ready and member.node is not None and now - member.since > self._timeout and self._working():
                self._lost(member, f"it was not ready after {self._timeout:g} s")
                break
        for group in self._places.missing_everywhere() & self._queue.unheld():
            reasons = "; ".join(
                f"{self._places.name(node)}: {told[group]}"
                for node, told in self._places.missing.items()
                if group in told
            )
            self._queue.give_up(group, f"not run: no node of the cluster has the model of {group}: {reasons}")
        self._report_dropped()
        if self._working():
            self._alone_since = now
        elif self._queue.queued and (self._hopeless() or now - self._alone_since > self._timeout):
            self._give_up()

    def _working(self) -> bool:
        return any(member.ready for member in self._members)

    def _hopeless(self) -> bool:
        return self._places.hopeless(demand.kind for demand in self._demands)

    def _give_up(self) -> None:
        wanted = " or ".join(str(demand.kind) for demand in self._demands)
        nodes = "; ".join(f"{node.name}: {shown_resources(node.resources)}" for node in self._places.nodes.values())
        bad = "".join(f"; {self._places.name(node)} is of no use: {why}" for node, why in self._places.bad.items())
        waited = "" if self._hopeless() else f" within --ray-timeout {self._timeout:g} s"
        told = (
            f"the cluster gave no worker{waited}. A worker needs {wanted}; "
            f"free now: {shown_resources(self._cluster.free())}; in all: {nodes or 'no node'}{bad}"
        )
        if not self._ever:
            raise UsageError(f"--ray: {told}")
        self._queue.drop_queued(f"not run: {told}")
        self._report_dropped()

    def _farewell(self) -> None:
        """Let the workers end their sessions."""
        for member in [member for member in self._members if not member.ready]:
            self._dismiss(member)
        deadline = time.monotonic() + FAREWELL_S
        while self._members and time.monotonic() < deadline:
            self._take_in(0.2)

    def _hand_over(self) -> None:
        """After an interrupt: what the workers have written by now is taken in, their cases are left unfinished."""
        self._queue.drop_queued("interrupted")
        self._reported = len(self._queue.dropped)
        deadline = time.monotonic() + 3.0
        while self._answers and time.monotonic() < deadline and any(member.ready for member in self._members):
            before = len(self._answers)
            self._drain(deadline)
            if len(self._answers) == before:
                return

    def _drain(self, deadline: float) -> None:
        for reference in self._cluster.wait(self._answers, max(0.0, deadline - time.monotonic())):
            member, what = self._answers.pop(reference)
            if what == "closed":
                member.remote.kill()
            if what != "news":
                continue
            with suppress(WorkerLost):
                for message in self._cluster.answer(reference):
                    if message[0] == "piece":
                        self._on_piece(member, message[1])
        self._written.sync()

    def _report_dropped(self) -> None:
        dropped = self._queue.dropped[self._reported :]
        self._reported += len(dropped)
        for entry in dropped:
            self._hook.pytest_runtest_logreport(report=unrun_report(entry.work.case, entry.reason))

    def _where(self, member: Member) -> str:
        return f"worker {member.name!r} on {self._places.name(member.node)}"

    def _say(self, text: str) -> None:
        if self._terminal is not None:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"ray: {text}")
