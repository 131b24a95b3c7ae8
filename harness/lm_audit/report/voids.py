"""Which cases are void, looked up once for a whole run."""

from __future__ import annotations

from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.runstore.voids import void_audits


class Voids:
    """The void audits of a run by audit and model; an entry without a model holds for all models."""

    def __init__(self, run: Run):
        self._found: dict[tuple[str, str | None], list[str]] = {}
        for void in void_audits(run):
            self._found.setdefault((void.audit, void.model), []).append(f"{void.case_id}: {void.reason}")

    def reasons(self, audit: str | None, model: str | None) -> tuple[str, ...]:
        """Why ``audit`` is void on ``model``, empty where it is not."""
        if audit is None:
            return ()
        keys = dict.fromkeys(((audit, None), (audit, model)))
        return tuple(reason for key in keys for reason in self._found.get(key, ()))

    def audits(self) -> dict[str, tuple[str, ...]]:
        """Every void audit with all its reasons."""
        found: dict[str, list[str]] = {}
        for (audit, _), reasons in self._found.items():
            found.setdefault(audit, []).extend(reasons)
        return {audit: tuple(reasons) for audit, reasons in found.items()}

    def __contains__(self, case: CaseRecord) -> bool:
        """Whether the numbers of ``case`` are void."""
        return bool(self.reasons(case.audit, case.model))
