"""What makes two runs hard to compare: other options, cases that never ended, no case in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lm_audit.report.comparison.direction import contradictory
from lm_audit.report.comparison.metric_change import MetricChange
from lm_audit.runstore.records import CaseRecord, Run

TELLING = ("size", "limit", "seed", "chat", "chat_args", "thinking_tokens", "dtype", "data", "audit")
"""Options on which numbers depend beside the model."""


def remarks_on(a: Run, b: Run, cases_a: Mapping[str, CaseRecord], cases_b: Mapping[str, CaseRecord]) -> Iterator[str]:
    """The remarks on a comparison of ``a`` and ``b``, whose cases are given by what they are matched by."""
    if cases_a and cases_b and not cases_a.keys() & cases_b.keys():
        yield "no case is in both runs; --across-models matches cases without their model and device"
    for run in (a, b):
        if run.missing:
            many = len(run.missing)
            yield f"{run.run_id} is incomplete: {many} planned case{'' if many == 1 else 's'} never ended"
        if run.damaged:
            many, one = len(run.damaged), run.damaged[0]
            yield f"{run.run_id} is damaged in {many} place{'' if many == 1 else 's'}: {one.file}: {one.reason}"
    first, second = _options(a), _options(b)
    for name in TELLING:
        yield from _differ(name, first.get(name), second.get(name))


def redrawn(a: Run, b: Run) -> bool:
    """Whether the runs say that they drew their items by different seeds."""
    seeds = _options(a).get("seed"), _options(b).get("seed")
    return None not in seeds and seeds[0] != seeds[1]


def remarks_on_metrics(changes: Sequence[MetricChange]) -> Iterator[str]:
    """Metrics of which the runs say differently which way is better, each once."""
    said = dict.fromkeys((c.metric, c.a.better, c.b.better) for c in changes if contradictory(c.a, c.b))
    for metric, first, second in said:
        yield f"better is {first} of {metric} in A, and {second} in B: what either calls worse counts as worse"


def _options(run: Run) -> dict[str, Any]:
    """The run's options; older runs, and runs without pytest, name size and seed beside them."""
    stated = run.metadata.get("options")
    return dict(run.metadata) | (dict(stated) if isinstance(stated, Mapping) else {})


def _differ(name: str, first: Any, second: Any) -> Iterator[str]:
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        one, other = (value if isinstance(value, Mapping) else {} for value in (first, second))
        for key in sorted({*one, *other}, key=str):
            yield from _differ(str(key).replace("_", " "), one.get(key), other.get(key))
    elif first != second and None not in (first, second):
        yield f"the runs differ in {name.replace('_', ' ')}: {first} and {second}"
    elif first != second:
        yield f"the runs differ in {name.replace('_', ' ')}: {_one(first)} and {_one(second)}"


def _one(value: Any) -> str:
    return "none" if value is None else str(value)
