"""xdist's scheduling protocol in front of the affinity queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.plugin.compat import workers_asked_for
from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.parallel.work import Work
from lm_audit.plugin.parallel.worker_notes import declared_costs

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


LOOK_AHEAD = 2
"""Cases held by a worker: the running one, and one more without which an xdist worker does not start the first."""


class AffinityScheduling:
    """xdist's scheduling protocol on top of :class:`AffinityQueue`; a case's key is its index in the collection."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.numnodes = workers_asked_for(config)
        self.collection: list[str] | None = None
        self._ready: dict[WorkerController, list[str] | None] = {}
        self._complete = False
        self._queue = AffinityQueue(())
        self._started: set[str] = set()
        self._skipped: set[str] = set()
        self._reported = 0

    # ---- xdist's protocol

    @property
    def nodes(self) -> list[WorkerController]:
        """The workers that are alive."""
        return list(self._ready)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all initial workers have collected."""
        if not self._complete:
            self._complete = sum(ids is not None for ids in self._ready.values()) >= self.numnodes
        return self._complete

    @property
    def tests_finished(self) -> bool:
        """Whether every case is finished or is the last one of its worker."""
        if not self.collection_is_completed or self._queue.queued:
            return False
        return all(len(self._queue.held(node)) < LOOK_AHEAD for node in self._queue.nodes)

    @property
    def has_pending(self) -> bool:
        """Whether any case is queued or held."""
        return bool(self._queue.queued) or any(self._queue.held(node) for node in self._queue.nodes)

    def add_node(self, node: WorkerController) -> None:
        """A worker is up and begins to collect."""
        self._ready[node] = None

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """A worker has collected; a replacement that collected otherwise is refused and sent home."""
        if self.collection is not None and list(collection) != self.collection:
            self._refuse(node, self.collection, collection, "the workers before it")
            return
        self._ready[node] = list(collection)
        if self.collection is not None:
            self._queue.add_node(node)

    def schedule(self) -> None:
        """Deal out the first cases, or feed a worker that joined later."""
        if self.collection is None and not self._open():
            return
        for want in range(1, LOOK_AHEAD + 1):  # One for everybody before a second one for anybody.
            for node in self._live():
                self._feed(node, want)
        self.report_dropped()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """A worker finished a case."""
        case = self._id(item_index)
        self._started.discard(case)
        self._queue.done(node, item_index, None if case in self._skipped else duration)
        self._feed(node, LOOK_AHEAD)

    def mark_test_pending(self, item: str) -> None:
        """Run a crashed case again (pytest-rerunfailures asks for it)."""
        assert self.collection is not None
        self._queue.requeue(self.collection.index(item))
        for node in self._live():
            self._feed(node, LOOK_AHEAD)

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Part of xdist's protocol; only a scheduler that steals is told of stolen cases."""
        raise NotImplementedError("the affinity scheduler takes no case back from a worker that lives")

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker ended or died: the id of the case that it was running, if any. ``KeyError`` if it is unknown."""
        del self._ready[node]
        if node not in self._queue.nodes:
            return None
        held = self._queue.held(node)
        # What it held and had not begun did not kill it, and is no crash of that case's model.
        started = bool(held) and self._id(held[0].key) in self._started and not _interrupted(node)
        lost = self._queue.lost(node, started=started)
        self._started.difference_update(work.case for work in held)
        return None if lost.killer is None else lost.killer.case

    # ---- hooks of the controller; this object is a registered plugin

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a worker began a case: only such a case can have killed it."""
        self._started.add(nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep cases that did not run out of the costs; after a crash, report what was given up because of it."""
        if report.skipped or getattr(report, "lm_audit_resumed", False):
            self._skipped.add(report.nodeid)
        if report.when not in ("setup", "call", "teardown"):
            self.report_dropped()

    # ---- reports of what does not run

    def report_dropped(self) -> None:
        """Report each case that was given up as an error, once."""
        dropped = self._queue.dropped[self._reported :]
        self._reported += len(dropped)
        for item in dropped:
            self.config.hook.pytest_runtest_logreport(report=unrun_report(item.work.case, item.reason))

    def report_unrun(self) -> None:
        """At the end of a run that was not stopped on purpose: report the cases for which no worker was left."""
        limit = self.config.getoption("maxworkerrestart", None) or f"4 x {self.numnodes}"
        self._queue.drop_queued(f"not run: no worker was left (--max-worker-restart is {limit})")
        self.report_dropped()

    # ---- inner workings

    def _open(self) -> bool:
        """Build the queue once all workers agree on what there is to run."""
        first, *others = ((node, ids) for node, ids in self._ready.items() if ids is not None)
        for node, ids in others:
            if ids != first[1]:
                self._refuse(node, first[1], ids, first[0].gateway.id)
        if any(ids != first[1] for _, ids in others):
            return False
        from lm_audit.plugin.parallel.durations import recorded_costs

        self.collection = first[1]
        costs = recorded_costs(self.config)
        costs.hints = declared_costs(self.config)
        works = [Work(index, case, group_of(case)) for index, case in enumerate(self.collection)]
        self._queue = AffinityQueue(works, costs, max_crashes=self.config.getoption("lm_audit_max_model_crashes"))
        for node in self._ready:
            self._queue.add_node(node)
        return True

    def _live(self) -> list[WorkerController]:
        return [node for node, ids in self._ready.items() if ids is not None and not node.shutting_down]

    def _feed(self, node: WorkerController, want: int) -> None:
        while not node.shutting_down and len(self._queue.held(node)) < want:
            work = self._queue.take(node)
            if work is None:
                # A worker of xdist begins its last case only once it knows that no other follows.
                node.shutdown()
                return
            try:
                node.send_runtest_some([work.key])
            except OSError:  # Dead already, which xdist tells us later; the case is held and will be requeued then.
                return

    def _id(self, index: Any) -> str:
        assert self.collection is not None
        case: str = self.collection[index]
        return case

    def _refuse(self, node: WorkerController, expected: Sequence[str], found: Sequence[str], whose: str) -> None:
        from xdist.report import report_collection_diff

        message = report_collection_diff(expected, found, whose, node.gateway.id)
        report = pytest.CollectReport(nodeid="", outcome="failed", longrepr=message, result=[])
        self.config.hook.pytest_collectreport(report=report)
        node.shutdown()


def _interrupted(node: WorkerController) -> bool:
    """Whether the worker ended by Ctrl-C, which is no crash."""
    output = getattr(node, "workeroutput", None) or {}
    return output.get("exitstatus") == pytest.ExitCode.INTERRUPTED


def unrun_report(case: str, reason: str) -> pytest.TestReport:
    """The report of a case that was given up."""
    path = case.split("::", 1)[0]
    report = pytest.TestReport(
        nodeid=case, location=(path, None, path), keywords={}, outcome="failed", longrepr=reason, when="setup"
    )
    vars(report)["lm_audit_unrun"] = reason
    return report
