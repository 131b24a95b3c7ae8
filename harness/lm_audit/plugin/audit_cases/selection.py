"""Selection: the one combined parameter of an audit test, a case on a model on a device."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lm_audit.plugin.audit_cases.case import Case, CaseSource
from lm_audit.plugin.compat import fixture_home
from lm_audit.plugin.options.model_choice import ModelChoice

TOY = "tiny"
"""The embedded toy model, as ``--model`` names it."""


@dataclass(frozen=True)
class Selection:
    """What one test item runs on; ``pinned`` where the case chose its model itself."""

    case: Case | None = None
    model: ModelChoice | None = None
    device: str | None = None
    pinned: bool = False
    source: CaseSource | None = None

    @property
    def id(self) -> str:
        """``MODEL@DEVICE-case``, ``MODEL@DEVICE`` or ``case``."""
        case = self.case.id if self.case else ""
        if self.model is None:
            return case
        return f"{self.model.name}@{self.device}" + (f"-{case}" if case else "")

    @property
    def control(self) -> str | None:
        """The control role that the case was declared with."""
        return self.case.control if self.case else None


def selection_of(item: pytest.Item) -> Selection | None:
    """The selection of a test item, None where it has none."""
    callspec = getattr(item, "callspec", None)
    found = callspec.params.get("lm_audit_case") if callspec is not None else None
    return found if isinstance(found, Selection) else None


def on_toy(selection: Selection) -> bool:
    """Whether the selection measures a built-in toy: the embedded ``tiny``, or one that its case makes."""
    by_case = selection.case is not None and selection.case.toy
    return by_case or (selection.model is not None and selection.model.spec.partition(":")[0] == TOY)


_OWN_FIXTURES = frozenset({"evidence", "language_model", "lm_audit_case"})


def is_audit_case(item: pytest.Item) -> bool:
    """Whether the item measures something: it has cases, or takes the model or the evidence fixture of this plugin."""
    names = _OWN_FIXTURES.intersection(getattr(item, "fixturenames", ()))
    return selection_of(item) is not None or any(_is_ours(item, name) for name in names)


def _is_ours(item: pytest.Item, name: str) -> bool:
    return fixture_home(item, name) == "lm_audit.plugin.audit_cases.fixtures"
