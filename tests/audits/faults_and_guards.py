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


def in_turns(number: int, guards: Collection[str]) -> Iterator[tuple[str, list[pytest.MarkDecorator]]]:
    """Each guard of the fault of this number with its marks: one, in turns, is always run, others are slow."""
    for at, guard in enumerate(sorted(guards)):
        yield guard, [] if at == number % len(guards) else [pytest.mark.slow]
