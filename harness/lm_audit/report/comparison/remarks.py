"""What makes two runs hard to compare: other options, cases that never ended, no case in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lm_audit.report.comparison.direction import contradictory
from lm_audit.report.comparison.metric_change import MetricChange
from lm_audit.runstore.merging.same_run import code_by_file, files_read
from lm_audit.runstore.records import CaseRecord, Run

TELLING = ("size", "limit", "seed", "chat", "chat_args", "thinking_tokens", "dtype", "data", "audit")
"""Options on which numbers depend beside the model."""

SHOWN = 5


def remarks_on(a: Run, b: Run, cases_a: Mapping[str, CaseRecord], cases_b: Mapping[str, CaseRecord]) -> Iterator[str]:
    """The remarks on a comparison of ``a`` and ``b``, whose cases are given by what they are matched by."""
    if cases_a and cases_b and not cases_a.keys() & cases_b.keys():
        yield "no case is in both runs; --across-models matches cases without their model and device"
    elif pair := _renamed(cases_a, cases_b):
        yield f"cases of {pair[0]} are in A alone, the same of {pair[1]} in B alone; --across-models matches them"
    yield from _lost_controls(cases_a, cases_b)
    for run in (a, b):
        if run.missing:
            many = len(run.missing)
            yield f"{run.run_id} is incomplete: {many} planned case{'' if many == 1 else 's'} never ended"
        if run.absent_parts:
            yield f"{run.run_id} is not the whole run: {run.absent_parts}"
        if run.damaged:
            many, one = len(run.damaged), run.damaged[0]
            yield f"{run.run_id} is damaged in {many} place{'' if many == 1 else 's'}: {one.file}: {one.reason}"
    first, second = _options(a), _options(b)
    for name in TELLING:
        yield from _differ(name, first.get(name), second.get(name))
    yield from _other_code(a.metadata, b.metadata)
    yield from _other_files(a, b)


def _other_code(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    """Packages of other versions, in one line; where there are none, that the audits' own code is another."""
    first, second = (found if isinstance(found := run.get("versions"), Mapping) else {} for run in (a, b))
    apart = [name for name in first if name in second and first[name] != second[name]]
    if apart:
        told = [f"{name} {first[name]} and {second[name]}" for name in apart[:SHOWN]]
        more = [f"{len(apart) - SHOWN} more"] if len(apart) > SHOWN else []
        yield f"the runs were made with other versions: {', '.join(told + more)}"
    elif None not in (codes := (a.get("code_version"), b.get("code_version"))) and codes[0] != codes[1]:
        yield f"the audits' code is another one in B: {codes[0]} and {codes[1]}"


def _other_files(a: Run, b: Run) -> Iterator[str]:
    """Eval files with other code of their own, where the package's is the same; files that both read as others."""
    first, second = code_by_file(a), code_by_file(b)
    same = a.metadata.get("code_version") == b.metadata.get("code_version")
    apart = [name for name in first if same and name in second and first[name] != second[name]]
    if apart:
        yield f"the code that ran is another one in B: {_some(apart)}"
    first, second = files_read(a), files_read(b)
    apart = [name for name in first if name in second and first[name] != second[name]]
    if apart:
        yield f"files that cases read held something else in B: {_some(apart)}"


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*names[:SHOWN], *more])


def _lost_controls(cases_a: Mapping[str, CaseRecord], cases_b: Mapping[str, CaseRecord]) -> Iterator[str]:
    """Controls that vouched for the first run and were skipped in the second, or left out of what it measured."""
    measured = {case.audit for case in cases_b.values() if not case.is_control and case.last.metrics}
    here = {_nameless(case): case.outcome for case in cases_b.values()}
    many: Counter[tuple[str, str]] = Counter()
    for case in cases_a.values():
        if not case.is_control or case.outcome != "passed":
            continue
        if here.get(_nameless(case)) == "skipped":
            many[str(case.audit), "skipped"] += 1
        elif _nameless(case) not in here and case.audit in measured:
            many[str(case.audit), "not run"] += 1
    for (audit, what), count in many.items():
        some = "1 control" if count == 1 else f"{count} controls"
        told = f"{some} of {audit} passed in A and {'was' if count == 1 else 'were'} {what} in B"
        yield f"{told}: nothing vouches for these numbers now"


def _renamed(cases_a: Mapping[str, CaseRecord], cases_b: Mapping[str, CaseRecord]) -> tuple[str, str] | None:
    """A model of the first run alone and one of the second alone that were asked the same."""
    gone, new = (
        {_nameless(case): case.model for key, case in one.items() if key not in other and case.model}
        for one, other in ((cases_a, cases_b), (cases_b, cases_a))
    )
    return next(((gone[key], new[key]) for key in gone if key in new and gone[key] != new[key]), None)


def _nameless(case: CaseRecord) -> str:
    return case.case_id.replace(f"[{case.ran_on}", "[", 1)


def redrawn(a: Run, b: Run) -> bool:
    """Whether the runs say that they drew their items by different seeds."""
    seeds = _options(a).get("seed"), _options(b).get("seed")
    return None not in seeds and seeds[0] != seeds[1]


def remarks_on_metrics(changes: Sequence[MetricChange]) -> Iterator[str]:
    """Metrics of which the runs say differently which way is better, each once."""
    said = dict.fromkeys((c.metric, c.a.better, c.b.better) for c in changes if contradictory(c.a, c.b))
    for metric, first, second in said:
        yield f"better is {first} of {metric} in A, and {second} in B: what either calls worse counts as worse"
    for one_run, case_id in (("B", "case_id_b"), ("A", "case_id")):
        alone = [(c, c.only_a if one_run == "B" else c.only_b) for c in changes if c.decided and c.basis == "paired"]
        lost = [(change, many) for change, many in alone if many]
        for one, many in lost[:SHOWN]:
            items = f"{many} of {one.pairs + one.others + many} items of {one.metric}"
            yield f"{items} have no value in {one_run} ({getattr(one, case_id)}): the others alone are compared"
        if len(lost) > SHOWN:
            yield f"so have items of {len(lost) - SHOWN} more headlines"


def _options(run: Run) -> dict[str, Any]:
    """The run's options; older runs, and runs without pytest, name size and seed beside them."""
    stated = run.metadata.get("options")
    return dict(run.metadata) | (dict(stated) if isinstance(stated, Mapping) else {})


def _differ(name: str, first: Any, second: Any) -> Iterator[str]:
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        one, other = (value if isinstance(value, Mapping) else {} for value in (first, second))
        for key in sorted({*one, *other}, key=str):
            yield from _differ(str(key), one.get(key), other.get(key))
    elif first != second and None not in (first, second):
        yield f"the runs differ in {name.replace('_', ' ')}: {first} and {second}"
    elif first != second:
        yield f"the runs differ in {name.replace('_', ' ')}: {_one(first)} and {_one(second)}"


def _one(value: object) -> str:
    return "none" if value is None else str(value)
