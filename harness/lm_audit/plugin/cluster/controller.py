"""Controller: a run on a cluster from its first worker to its last; what is lost is tried once more elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.cluster.case_reports import CaseReports
from lm_audit.plugin.cluster.cluster import Cluster, WorkerLost
from lm_audit.plugin.cluster.crew import Crew
from lm_audit.plugin.cluster.feeding import Feeder
from lm_audit.plugin.cluster.kinds import Demand
from lm_audit.plugin.cluster.member import Member, differences
from lm_audit.plugin.cluster.node.mirror import Piece
from lm_audit.plugin.cluster.orders import Message, Order, Ready
from lm_audit.plugin.cluster.places import Places, shown_resources
from lm_audit.plugin.cluster.written import Written
from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.record.audit_session import AuditSession

FAREWELL_S = 10.0
"""How long workers may take to end in order."""

HAND_OVER_S = 3.0
"""How long they may take after an interrupt to hand over what they have written."""


class Controller:
    """Feeds the workers from the queue, and acts on what they say."""

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
        self._session, self._audit, self._queue, self._hook = session, audit, queue, config.hook
        self._timeout: float = config.getoption("lm_audit_ray_timeout")
        self._places = Places(config.getoption("lm_audit_ray_workers"))
        self._crew = Crew(cluster, queue, self._places, demands, order)
        self._reports = CaseReports(session, audit, queue, lambda member: self._places.name(member.node))
        self._feeder = Feeder(session, audit, queue, self._crew, self._reports)
        self._written = Written(audit.folder.path)
        self._ever = False
        self._alone_since = time.monotonic()
        self._terminal = config.pluginmanager.get_plugin("terminalreporter")
        if self._terminal is not None:
            self._terminal.showfspath = False  # Workers report in turns: a letter stands for itself.

    # ---- the run

    def run(self) -> None:
        """Run every case; raises what ends a session early (``-x``, a signal), once the workers are sent home."""
        try:
            while not self._finished():
                self._crew.grow()
                self._take_in(0.5)
                self._check_stop()
                self._check_waiting()
            self._farewell()
        except (KeyboardInterrupt, pytest.Session.Interrupted):
            self._hand_over()
            raise
        finally:
            self._crew.go()

    def _finished(self) -> bool:
        return not self._queue.queued and not any(self._queue.held(node) for node in self._queue.nodes)

    def _check_stop(self) -> None:
        """``-x`` and its like: no further case begins, those that run end."""
        session = self._session
        if not (session.shouldfail or session.shouldstop):
            return
        self._reports.drop_silently("stopped")
        deadline = time.monotonic() + self._timeout
        while any(member.running for member in self._crew.members) and time.monotonic() < deadline:
            self._take_in(0.5)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        raise session.Interrupted(session.shouldstop)

    def _farewell(self) -> None:
        """Let the workers end their sessions."""
        for member in [member for member in self._crew.members if not member.ready]:
            self._crew.dismiss(member)
        deadline = time.monotonic() + FAREWELL_S
        while self._crew.members and time.monotonic() < deadline:
            self._take_in(0.2)

    def _hand_over(self) -> None:
        """After an interrupt: what the workers have written by now is taken in, their cases are left unfinished."""
        self._reports.drop_silently("interrupted")
        deadline = time.monotonic() + HAND_OVER_S
        waiting = {member for member in self._crew.members if member.ready}
        while waiting and time.monotonic() < deadline:
            heard = list(self._crew.hear(max(0.0, deadline - time.monotonic())))
            if not heard:
                return
            for answer in heard:
                waiting.discard(answer.member)
                if answer.what == "news" and not isinstance(answer.content, WorkerLost):
                    for message in answer.content:
                        if message[0] == "piece":
                            self._on_piece(answer.member, message[1])
            self._written.sync()

    # ---- what the workers say

    def _take_in(self, timeout_s: float) -> None:
        """Wait for answers and act on them."""
        for member, what, content in self._crew.hear(timeout_s):
            if isinstance(content, WorkerLost):
                self._lost(member, str(content), actor=True)
            elif what == "hello":
                self._crew.arrived(member, content["node"])
            elif what == "begun":
                self._crew.exchange(member)
            else:
                self._news(member, content)
        self._written.sync()

    def _news(self, member: Member, messages: Sequence[Message]) -> None:
        for message in messages:
            getattr(self, f"_on_{message[0]}")(member, *message[1:])
            if member not in self._crew.members:
                return
        if member.left:
            self._crew.dismiss(member)
            return
        self._crew.exchange(member)

    def _on_piece(self, member: Member, piece: Piece) -> None:
        try:
            member.unwritten = self._written.take(piece) or member.unwritten
        except ValueError as error:
            self._lost(member, f"its session broke: {error}")

    def _on_ready(self, member: Member, ready: Ready) -> None:
        node = member.node or ""
        other = differences(ready)
        if other:
            self._reject(node, f"it runs other code: {other}")
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
        self._feeder.feed(member)

    def _on_started(self, member: Member, case: str, attempt: int, location: object) -> None:
        if member.given.get(case) == attempt:
            self._reports.started(member, case, attempt, location)

    def _on_report(self, member: Member, case: str, attempt: int, data: dict[str, Any]) -> None:
        if member.given.get(case) == attempt:
            self._reports.report(member, data)

    def _on_finished(self, member: Member, case: str, attempt: int, location: object) -> None:
        if member.given.get(case) == attempt:
            self._reports.finished(member, case, location)

    def _on_done(self, member: Member, case: str, attempt: int, seconds: float) -> None:
        if member.given.get(case) == attempt:
            self._reports.done(member, case, seconds)
            self._feeder.feed(member)

    def _on_unknown(self, member: Member, case: str, attempt: int) -> None:
        if member.given.get(case) == attempt:
            self._reports.not_there(member, case)
            self._feeder.feed(member)

    def _on_warning(self, member: Member, warning: object, when: object, nodeid: str, location: object) -> None:
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
            self._crew.dismiss(member)
        else:
            self._lost(member, how)

    # ---- workers and nodes fail

    def _lost(self, member: Member, how: str, *, actor: bool = False) -> None:
        """A worker died. Where not its session but the ``actor`` did, its node may be gone, which Ray tells later."""
        self._crew.forget(member)
        if member in self._queue.nodes:
            told = self._reports.lost(member, how)
            if told is not None:
                self._say(told)
            self._reports.tell_dropped()
        elif not member.ending:
            self._failed_start(member, how, actor)

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
            self._say(f"{self._places.name(node)} is given no cases: {why}")
        for member in [member for member in self._crew.members if member.node == node and not member.ready]:
            self._crew.dismiss(member)

    def _tell_missing(self, node: str, missing: Any) -> None:
        if node in self._places.missing:
            return
        self._places.missing[node] = dict(missing)
        for group, reason in missing.items():
            self._say(f"{self._places.name(node)} is given no cases of {group}: {reason}")

    # ---- waiting

    def _check_waiting(self) -> None:
        """Give up what no worker will ever take, and end a wait that is too long."""
        now = time.monotonic()
        for member in self._crew.members:
            late = now - member.since > self._timeout
            if not member.ready and member.node is not None and late and self._crew.working:
                self._lost(member, f"it was not ready after {self._timeout:g} s")
                break
        for group in self._places.missing_everywhere() & self._queue.unheld():
            reasons = "; ".join(
                f"{self._places.name(node)}: {told[group]}"
                for node, told in self._places.missing.items()
                if group in told
            )
            self._queue.give_up(group, f"not run: no node of the cluster has the model of {group}: {reasons}")
        self._reports.tell_dropped()
        if self._crew.working:
            self._alone_since = now
        elif self._queue.queued and (self._crew.hopeless or now - self._alone_since > self._timeout):
            self._give_up()

    def _give_up(self) -> None:
        nodes = "; ".join(f"{node.name}: {shown_resources(node.resources)}" for node in self._places.nodes.values())
        bad = "".join(f"; {self._places.name(node)} is of no use: {why}" for node, why in self._places.bad.items())
        waited = "" if self._crew.hopeless else f" within --ray-timeout {self._timeout:g} s"
        told = (
            f"the cluster gave no worker{waited}. A worker needs {self._crew.wanted()}; "
            f"free now: {shown_resources(self._crew.free())}; in all: {nodes or 'no node'}{bad}"
        )
        if not self._ever:
            raise UsageError(f"--ray: {told}")
        self._queue.drop_queued(f"not run: {told}")
        self._reports.tell_dropped()

    def _say(self, text: str) -> None:
        if self._terminal is not None:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"ray: {text}")
