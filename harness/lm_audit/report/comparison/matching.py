"""Which case of one run goes with which case of the other."""

from __future__ import annotations

from collections.abc import Mapping

from lm_audit.errors import UsageError
from lm_audit.runstore.records import CaseRecord, Run

Cases = dict[str, CaseRecord]


def keyed(a: Run, b: Run, across_models: bool) -> tuple[Cases, Cases]:
    """The cases of both runs by what they are matched by: their id, or across models their id with ``a``'s model.

    Across models, models of one name go together, and so do the last two that are left; where more are left over,
    ``UsageError`` names them.
    """
    if not across_models:
        return {case.case_id: case for case in a.cases}, {case.case_id: case for case in b.cases}
    partner = _partners(_models(a), _models(b))
    # Runs on the same devices are matched device by device: a case may have run on several.
    keep = _devices(a) == _devices(b)
    return _by_partner(a, {}, keep), _by_partner(b, partner, keep)


def _devices(run: Run) -> set[str | None]:
    return {case.device for case in run.cases if case.model is not None}


def _models(run: Run) -> list[str]:
    pinned = {case.case_id for case in run.plan if case.pinned}
    audited = [case.model for case in run.cases if case.model is not None and case.case_id not in pinned]
    return list(dict.fromkeys(audited))


def _partners(first: list[str], second: list[str]) -> Mapping[str, str]:
    """For each model of the second run the one of the first that it is compared with."""
    partner = {name: name for name in second if name in first}
    left = [name for name in first if name not in partner], [name for name in second if name not in partner]
    if not partner and min(map(len, left)) >= 1 and max(map(len, left)) > 1:
        raise UsageError(
            f"which models are to be compared? the first run holds {', '.join(first)}, the second {', '.join(second)}; "
            "give them the same names in both runs (--model NAME=SPEC), or run one model each"
        )
    if len(left[0]) == len(left[1]) == 1:
        partner[left[1][0]] = left[0][0]
    return partner


def _by_partner(run: Run, partner: Mapping[str, str], keep_device: bool) -> Cases:
    found: Cases = {}
    for case in run.cases:
        model = None if case.model is None else partner.get(case.model, case.model)
        place = f"[{model}@{case.device}" if keep_device and case.device is not None else f"[{model}"
        key = case.case_id.replace(f"[{case.ran_on}", place, 1)
        if key in found:
            raise UsageError(
                f"which device is to be compared? run {run.run_id} holds {found[key].case_id} and {case.case_id}; "
                "compare without --across-models, or run one device each"
            )
        found[key] = case
    return found
