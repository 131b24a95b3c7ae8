"""What tables of faults share: sound answers that are made once, and the guards on which a fault is tried."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pytest

from lm_audit.models import LanguageModel


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method, each answer of a model and its weights computed once: every fault starts from the same sound ones."""

    def answer(self: LanguageModel, requests: Sequence[Any], **options: Any) -> Any:
        known = vars(self).setdefault("remembered", {})
        weights = tuple(float(part.sum()) for part in self.module.parameters())
        key = pickle.dumps((function.__name__, weights, list(requests), sorted(options.items())))
        if key not in known:
            known[key] = function(self, requests, **options)
        return list(known[key])

    return answer


def put_once(patch: pytest.MonkeyPatch, *places: tuple[Any, str]) -> None:
    """Have functions of plain values, each by its module and name, compute every answer once, whatever the test.

    For what is long and the same under most faults. A fault that takes the place of such a function is none of its
    answers; one of what such a function calls must not be planted.
    """
    for module, name in places:
        key = (module.__name__, name)
        if key not in _ONCE:
            _ONCE[key] = _once(getattr(module, name))
        patch.setattr(module, name, _ONCE[key])


_ONCE: dict[tuple[str, str], Callable[..., Any]] = {}


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[bytes, Any] = {}

    def answer(*words: Any, **options: Any) -> Any:
        key = pickle.dumps((words, sorted(options.items())))
        if key not in known:
            known[key] = function(*words, **options)
        return known[key]

    return answer


def in_turns(number: int, guards: Collection[str]) -> Iterator[tuple[str, list[pytest.MarkDecorator]]]:
    """Each guard of the fault of this number with its marks: one, in turns, is always run, others are slow."""
    for at, guard in enumerate(sorted(guards)):
        yield guard, [] if at == number % len(guards) else [pytest.mark.slow]
