"""Which cases are void, looked up once for a whole run, and why in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lm_audit.report.wording.names import tail
from lm_audit.runstore.records import CaseRecord, Run
from lm_audit.runstore.voids import VoidAudit, void_audits


class Voids:
    """The void audits of a run by audit and model; an entry without a model holds for all models."""

    def __init__(self, run: Run):
        self._measured = {case.audit for case in run.cases if case.last.metrics}
        self._found: dict[tuple[str, str | None], list[VoidAudit]] = {}
        for void in void_audits(run):
            self._found.setdefault((void.audit, void.model), []).append(void)

    def reasons(self, audit: str | None, model: str | None) -> tuple[str, ...]:
        """Why ``audit`` is void on ``model``, empty where it is not."""
        if audit is None:
            return ()
        keys = dict.fromkeys(((audit, None), (audit, model)))
        return tuple(_told(void) for key in keys for void in self._found.get(key, ()))

    def audits(self) -> dict[str, tuple[str, ...]]:
        """Every void audit with all its reasons."""
        return {audit: tuple(map(_told, found)) for audit, found in self._by_audit().items()}

    def summaries(self) -> dict[str, tuple[str, str]]:
        """Every void audit with the models it is void on (empty: all) and the reason in one line.

        An audit that measured nothing has no numbers that could be void: what broke it is told instead.
        """
        found = self._by_audit().items()
        return {audit: (_models(voids), _summary(voids)) for audit, voids in found if audit in self._measured}

    def _by_audit(self) -> dict[str, list[VoidAudit]]:
        found: dict[str, list[VoidAudit]] = {}
        for (audit, _), voids in self._found.items():
            found.setdefault(audit, []).extend(voids)
        return found

    def __contains__(self, case: CaseRecord) -> bool:
        """Whether the numbers of ``case`` are void."""
        return bool(self.reasons(case.audit, case.model))


def _told(void: VoidAudit) -> str:
    return f"{void.case_id}: {void.reason}"


def _models(voids: Sequence[VoidAudit]) -> str:
    named = dict.fromkeys(void.model for void in voids)
    return "" if None in named else ", ".join(str(model) for model in named)


def _summary(voids: Sequence[VoidAudit]) -> str:
    """The first control that failed, else what kept them from running, and how many more there are."""
    ranked = sorted(voids, key=lambda void: (" failed" not in void.reason, "did not run" in void.reason))
    first = " ".join(ranked[0].reason.split())
    alike = Counter(" ".join(void.reason.split()) for void in voids)[first]
    if first.endswith("control did not run") and len(voids) > 1:
        return f"{len(voids)} controls did not run"
    named = f"{first} ({tail(ranked[0].case_id)})" if alike == 1 else f"{alike} controls: {first}"
    rest = len(voids) - alike
    return named + (f", and {rest} more" if rest else "")
