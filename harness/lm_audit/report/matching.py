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
    return _without_device(a, {}), _without_device(b, partner)


def _models(run: Run) -> list[str]:
    return list(dict.fromkeys(case.model for case in run.cases if case.model is not None))


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


def _without_device(run: Run, partner: Mapping[str, str]) -> Cases:
    found = {}
    for case in run.cases:
        model = None if case.model is None else partner.get(case.model, case.model)
        key = case.case_id.replace(f"[{case.model}@{case.device}", f"[{model}", 1)
        found[key] = case
    return found
