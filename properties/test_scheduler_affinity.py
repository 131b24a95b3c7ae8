"""Whatever happens, the affinity queue keeps every case in exactly one place, and a crash costs one case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.parallel.costs import CostModel
from lm_audit.plugin.parallel.work import Work

GROUPS = st.sampled_from([None, "a@cpu", "b@cpu", "c@cuda", "d@cpu"])


def works_of(groups: list[str | None]) -> list[Work]:
    return [Work(index, f"t.py::test_x[{group}-{index}]", group) for index, group in enumerate(groups)]


class Scheduling(RuleBasedStateMachine):
    """Nodes join, ask, finish, die and are asked to repeat in any order."""

    @initialize(groups=st.lists(GROUPS, max_size=40), max_crashes=st.integers(1, 4))
    def start(self, groups: list[str | None], max_crashes: int) -> None:
        self.works = works_of(groups)
        self.queue = AffinityQueue(self.works, max_crashes=max_crashes)
        self.finished: Counter[Hashable] = Counter()
        self.killers: Counter[Hashable] = Counter()
        self.repeats: Counter[Hashable] = Counter()
        self.names = 0

    @rule()
    def join(self) -> None:
        self.queue.add_node(self.names)
        self.names += 1

    @precondition(lambda self: self.queue.nodes)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.queue.nodes))
        before = self.queue.queued
        work = self.queue.take(node)
        assert self.queue.queued == before - (work is not None)
        if work is not None:
            assert self.queue.held(node)[-1] == work

    @precondition(lambda self: any(self.queue.held(node) for node in self.queue.nodes))
    @rule(data=st.data(), seconds=st.one_of(st.none(), st.floats(0, 100)))
    def finish(self, data: st.DataObject, seconds: float | None) -> None:
        node = data.draw(st.sampled_from([node for node in self.queue.nodes if self.queue.held(node)]))
        work = self.queue.held(node)[0]
        self.queue.done(node, work.key, seconds)
        self.finished[work.key] += 1

    @precondition(lambda self: self.queue.nodes)
    @rule(data=st.data(), started=st.booleans())
    def die(self, data: st.DataObject, started: bool) -> None:
        node = data.draw(st.sampled_from(self.queue.nodes))
        held = self.queue.held(node)
        lost = self.queue.lost(node, started=started)
        assert lost.killer == (held[0] if held and started else None)
        assert lost.requeued == len(held) - (lost.killer is not None)
        assert node not in self.queue.nodes
        if lost.killer is not None:
            self.killers[lost.killer.key] += 1

    @precondition(lambda self: +(self.killers - self.repeats))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(+(self.killers - self.repeats), key=str)))
        self.queue.requeue(key)
        self.repeats[key] += 1

    @invariant()
    def every_case_is_in_one_place(self) -> None:
        held = Counter(work.key for node in self.queue.nodes for work in self.queue.held(node))
        dropped = Counter(item.work.key for item in self.queue.dropped)
        out = held + dropped + self.finished + self.killers - self.repeats
        assert all(count == 1 for count in out.values())
        assert self.queue.queued == len(self.works) - len(+out)

    @invariant()
    def a_dropped_case_belongs_to_an_unhealthy_model(self) -> None:
        for item in self.queue.dropped:
            assert item.work.group is not None and self.queue.unhealthy(item.work.group)
            assert item.work.group in item.reason


TestScheduling = Scheduling.TestCase
TestScheduling.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def drain(queue: AffinityQueue, nodes: int, seconds: Mapping[Hashable, float], load_s: float) -> tuple[float, int]:
    """Run the queue on simulated nodes: the make-span, and how many loads it took."""
    clock = dict.fromkeys(range(nodes), 0.0)
    loaded: dict[int, str | None] = dict.fromkeys(range(nodes))
    loads = 0
    for node in clock:
        queue.add_node(node)
    working = set(clock)
    while working:
        node = min(working, key=lambda name: clock[name])
        work = queue.take(node)
        if work is None:
            working.discard(node)
            continue
        spent = seconds[work.key]
        if work.group is not None and work.group != loaded[node]:
            loaded[node], loads, spent = work.group, loads + 1, spent + load_s
        clock[node] += spent
        queue.done(node, work.key, spent)
    return max(clock.values(), default=0.0), loads


@given(groups=st.lists(GROUPS, max_size=60), nodes=st.integers(1, 8), load_s=st.floats(0, 50), seed=st.integers(0, 99))
@settings(deadline=None)
def test_every_case_runs_once_and_no_worker_stands_idle_for_long(
    groups: list[str | None], nodes: int, load_s: float, seed: int
) -> None:
    works = works_of(groups)
    seconds = {work.key: 1.0 + (seed * 7 + number * 13) % 10 for number, work in enumerate(works)}
    models = {work.group for work in works if work.group is not None}
    costs = CostModel({work.case: seconds[work.key] for work in works}, dict.fromkeys(models, load_s))
    queue = AffinityQueue(works, costs)
    span, loads = drain(queue, nodes, seconds, load_s)
    assert queue.queued == 0 and not queue.dropped
    assert len(models) <= loads <= len(models) + nodes * max(1, len(models))
    # List scheduling's bound, with every load on the critical path: work / nodes + the longest case + the loads.
    work_s = sum(seconds.values())
    assert span <= work_s / nodes + 10.0 + (len(models) + 1) * (load_s + nodes * load_s) + 1e-9


@given(sizes=st.lists(st.integers(1, 15), min_size=1, max_size=6), extra=st.integers(0, 3))
@settings(deadline=None)
def test_with_dear_loads_and_enough_workers_each_model_is_loaded_once(sizes: list[int], extra: int) -> None:
    models = [f"m{model}@cpu" for model, size in enumerate(sizes) for _ in range(size)]
    works = works_of([*models])
    costs = CostModel(load_s=dict.fromkeys(models, 1e6))
    _, loads = drain(AffinityQueue(works, costs), len(sizes) + extra, {work.key: 1.0 for work in works}, 1e6)
    assert loads == len(sizes)


@given(size=st.integers(2, 40), nodes=st.integers(2, 6))
@settings(deadline=None)
def test_a_model_that_loads_for_nothing_is_shared_by_all(size: int, nodes: int) -> None:
    works = works_of(["m@cpu"] * size)
    queue = AffinityQueue(works, CostModel(load_s={"m@cpu": 0.0}))
    span, loads = drain(queue, nodes, {work.key: 1.0 for work in works}, 0.0)
    assert loads == min(size, nodes)
    assert span == -(-size // nodes)


@given(groups=st.lists(GROUPS, max_size=40), nodes=st.integers(1, 4))
@settings(deadline=None)
def test_the_same_run_is_dealt_out_the_same_way(groups: list[str | None], nodes: int) -> None:
    def deal() -> list[tuple[int, Hashable]]:
        queue = AffinityQueue(works_of(groups))
        for node in range(nodes):
            queue.add_node(node)
        dealt = []
        for turn in range(len(groups) * nodes):
            work = queue.take(turn % nodes)
            if work is not None:
                dealt.append((turn % nodes, work.key))
                queue.done(turn % nodes, work.key, 1.0)
        return dealt

    assert deal() == deal()
