"""Case: one parameter set of an audit's test, and the decorator that hands them to a test function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pytest

from lm_audit.errors import UsageError
from lm_audit.models.capabilities import Capability
from lm_audit.shared.visible import look

if TYPE_CHECKING:
    from lm_audit.plugin.options.run_options import RunOptions

_LEGAL_ID = re.compile(r"[^@\[\]\x00-\x20\x7f]+")
_SOURCE = "_lm_audit_cases"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Case:
    """One case of a test; its id is part of the public contract and stays the same from run to run.

    ``params`` is what the test reads; ``control`` marks a positive or negative control; ``skip`` is the reason why the
    case cannot run here; ``marks`` are names of further markers; ``cost`` is its share of work relative to its
    neighbours; ``model`` (``[NAME=]SPEC``) pins it to a model whatever ``--model`` says; ``toy`` says that it measures
    a built-in toy model, which says nothing about any other (so do all cases on ``tiny``); ``tokens`` is what its
    prompts take with their answers, so that it is skipped at collection on a model whose context is shorter.
    ``needs`` are what its model must offer, where that differs from what its test declares.
    Raises ``UsageError`` for an id that is empty or holds ``@``, ``[``, ``]`` or white space.
    """

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)
    control: Literal["positive", "negative"] | None = None
    skip: str | None = None
    marks: tuple[str, ...] = ()
    cost: float = 1.0
    model: str | None = None
    toy: bool = False
    tokens: int | None = None
    needs: tuple[Capability, ...] | None = None

    def __post_init__(self) -> None:
        if _LEGAL_ID.fullmatch(self.id) is None:
            raise UsageError(f"case id {self.id!r}: use printable characters other than '@', '[', ']' and white space")
        if self.control not in (None, "positive", "negative"):
            raise UsageError(f"case {self.id}: control {self.control!r} is neither 'positive' nor 'negative'")


@dataclass(frozen=True)
class CaseSource:
    """Where the cases of a test come from, and what checks one with the tokenizer before weights load."""

    source: Callable[[RunOptions], Iterable[Case]] | Iterable[Case]
    preflight: Callable[..., Any] | None = None
    needs: tuple[Capability, ...] = tuple(Capability)

    def needed(self, case: Case | None) -> tuple[Capability, ...]:
        """What a case needs of its model."""
        return self.needs if case is None or case.needs is None else case.needs

    def cases(self, options: RunOptions) -> list[Case]:
        """The cases under ``options``; ``UsageError`` where two have one id, or ids that nobody can tell apart."""
        found = list(self.source(options) if callable(self.source) else self.source)
        ids: dict[str, str] = {}
        for case in found:
            name = look(case.id)
            if name not in ids:
                ids[name] = case.id
            elif ids[name] == case.id:
                raise UsageError(f"case id {case.id!r} is given twice; ids must be unique within a test")
            else:
                raise UsageError(
                    f"case ids {ids[name]!a} and {case.id!a} look the same when they are shown; rename one"
                )
        return found


def cases(
    source: Callable[[RunOptions], Iterable[Case]] | Iterable[Case],
    *,
    preflight: Callable[..., Any] | None = None,
    needs: Iterable[Capability] = tuple(Capability),
) -> Callable[[Function], Function]:
    """A decorator that runs a test once a case (and once a model and device, if it takes ``language_model``).

    ``source`` is a list of cases, or a function of the run's options that gives them at collection; it raises
    ``DataError`` or ``UsageError`` for bad input. ``preflight(case, tokenizer, options)`` runs before the weights load;
    it may give pairs (what the model will read, its tokens or the text), of which those longer than its window are
    refused then.
    ``needs`` says what the model must offer; a case on a model that does not is skipped at collection, with the reason.
    A test that declares none needs everything.
    """

    def decorate(function: Function) -> Function:
        setattr(function, _SOURCE, CaseSource(source, preflight, tuple(needs)))
        marked: Function = pytest.mark.usefixtures("lm_audit_case")(function)
        return marked

    return decorate


def source_of(function: object) -> CaseSource | None:
    """The case source that :func:`cases` put on a test function, if any."""
    found = getattr(function, _SOURCE, None)
    return found if isinstance(found, CaseSource) else None
