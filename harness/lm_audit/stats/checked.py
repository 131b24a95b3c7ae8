"""One kind of check for the arguments of every public statistic: by their names, before anything is computed.

What is no number, label or choice at all is a ``UsageError`` that names the argument. NaN, infinity and too few values
are no misuse: the statistic answers that nothing can be estimated, and why (:mod:`lm_audit.stats.inputs`).
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from numbers import Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from lm_audit.errors import UsageError
from lm_audit.shared.number_checks import check_whole, shown_shortly
from lm_audit.stats.inputs import Array, check_share

MOST_RESAMPLES = 10**7
"""A hundred times what any audit draws; more than this would only fill the memory."""

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Check = Callable[[str, Any], object]
"""What takes an argument's name and value, and gives the value to go on with."""


def checked(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """``function``, whose arguments are checked under their names (:data:`CHECKS`); None passes as a default."""
    known = inspect.signature(function).parameters.values()
    checks = [_or_none(CHECKS.get(one.name, _as_it_is), one.default is None) for one in known]
    by_name = {one.name: check for one, check in zip(known, checks, strict=True)}

    @functools.wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        given: list[Any] = [by_name[name](name, value) for name, value in zip(by_name, args, strict=False)]
        # What is too much or unknown is the call's own TypeError.
        given += args[len(given) :]
        named: dict[str, Any] = {k: by_name.get(k, _as_it_is)(k, value) for k, value in kwargs.items()}
        return function(*given, **named)

    return call


def _or_none(check: Check, optional: bool) -> Check:
    return (lambda name, value: None if value is None else check(name, value)) if optional else check


def _as_it_is(name: str, value: object) -> object:
    return value


def numbers(name: str, values: object) -> Array:
    """``values`` as float64, of any shape, None as NaN. ``UsageError`` where they are text, complex, dates, ragged."""
    if np.ma.is_masked(values):
        raise UsageError(f"{name} has masked values; take them out (.compressed()) or give NaN for them (.filled(nan))")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            return np.array([_as_float(name, one) for one in array.ravel()], dtype=np.float64).reshape(array.shape)
        if array.dtype.kind in "biuf":
            with np.errstate(over="ignore"):
                return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError, RuntimeError) as problem:
        raise UsageError(f"{name} must be an array of numbers, got {shown_shortly(values)} ({problem})") from problem
    kind = {"U": "text", "S": "bytes", "c": "complex numbers", "M": "dates", "m": "durations"}.get(array.dtype.kind)
    raise UsageError(f"{name} must be an array of numbers, got {kind or array.dtype}: {shown_shortly(values)}")


def vector(name: str, values: object) -> Array:
    """The same with one dimension."""
    array = numbers(name, values)
    if array.ndim != 1:
        raise UsageError(f"{name} must be a list of numbers, got an array of shape {array.shape}")
    return array


def _one_or_several(name: str, values: object) -> Array:
    return vector(name, np.atleast_1d(numbers(name, values)))


def _as_float(name: str, one: object) -> float:
    if one is None:
        return math.nan
    if isinstance(one, Real | Decimal | np.bool_):
        return float(one)
    raise UsageError(f"{name} must be an array of numbers, and holds {shown_shortly(one)}")


def number_given(name: str, value: object) -> object:
    """``value`` if it is one real number or None, finite or not; a whole one must fit a float."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    try:
        if value is None or (isinstance(value, Real | np.bool_) and float(value) is not None):
            return value
    except OverflowError:
        raise UsageError(f"{name} is larger than any float") from None
    raise UsageError(f"{name} must be one number, got {shown_shortly(value)}")


def _share(name: str, value: object) -> object:
    found: Any = number_given(name, value)
    return check_share(name, math.nan if found is None else found)


def labels(name: str, given: Any) -> list[Hashable]:
    """One label a value: anything that can be told from the others, which NaN cannot."""
    if (
        isinstance(given, str | bytes)
        or not isinstance(given, Iterable)
        or (isinstance(given, np.ndarray) and given.ndim != 1)
    ):
        raise UsageError(f"{name} must be a list of labels, one a value, got {shown_shortly(given)}")
    if np.ma.is_masked(given):
        raise UsageError(f"{name} has masked labels; give each value a label, or leave the value out")
    found = list(given)
    for one in found:
        if isinstance(one, float | np.floating) and math.isnan(one):
            raise UsageError(f"{name} holds NaN: a value without a label is in no cluster, leave it out")
        try:
            hash(one)
        except TypeError:
            raise UsageError(f"{name} must hold labels, text or numbers, and holds {shown_shortly(one)}") from None
    return found


def _resamples(name: str, value: object) -> object:
    check_whole(name, value, 1, MOST_RESAMPLES)
    return value


def _seed(name: str, value: object) -> object:
    check_whole(name, value)
    return value


def _text(name: str, value: object) -> object:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a name, got {shown_shortly(value)}")
    return value


def _statistic(name: str, value: object) -> object:
    if not isinstance(value, str) and not callable(value):
        raise UsageError(f"{name} must be a name or a function of the values, got {shown_shortly(value)}")
    return value


def _bounds(name: str, value: Any) -> object:
    found = numbers(name, value)
    if found.shape != (2,) or not np.isfinite(found).all() or not found[0] < found[1]:
        raise UsageError(f"{name} must be two finite numbers, the lower one first, got {shown_shortly(value)}")
    return float(found[0]), float(found[1])


def _finite(name: str, value: object) -> object:
    found: Any = number_given(name, value)
    if found is None or not math.isfinite(found):
        raise UsageError(f"{name} must be a finite number, got {shown_shortly(value)}")
    return found


def _positive(name: str, value: object) -> object:
    found: Any = _finite(name, value)
    if found <= 0:
        raise UsageError(f"{name} must be above 0, got {shown_shortly(value)}")
    return found


def _paths(name: str, value: Any) -> list[tuple[Hashable, ...]]:
    if isinstance(value, list | tuple) and all(
        isinstance(path, tuple) and all(isinstance(part, Hashable) for part in path) for path in value
    ):
        return [*value]
    raise UsageError(f"{name} must be a list of tuples of names, got {shown_shortly(value)}")


def _of(check: Check, *names: str) -> dict[str, Check]:
    return dict.fromkeys(names, check)


CHECKS: dict[str, Check] = {
    **_of(numbers, "values", "a", "b", "differences", "member_scores", "control_scores", "members", "controls"),
    **_of(numbers, "table", "in_scores", "out_scores", "reference_losses", "losses"),
    **_of(_one_or_several, "canary_losses"),
    **_of(numbers, "minus"),
    **_of(vector, "p", "floors", "weights"),
    **_of(labels, "clusters"),
    **_of(_share, "confidence", "level", "power"),
    **_of(_resamples, "n_resamples"),
    **_of(_seed, "seed"),
    **_of(_text, "method"),
    **_of(_statistic, "statistic"),
    **_of(_bounds, "bounds"),
    **_of(_positive, "scale"),
    **_of(_paths, "paths"),
    **_of(number_given, "k", "n", "k_a", "n_a", "k_b", "n_b", "tp", "n_member", "fp", "n_control", "m", "r", "v"),
    **_of(number_given, "eps", "delta", "margin", "effect", "auc", "observed", "low", "high", "mean"),
    **_of(number_given, "rank", "space_size", "length", "alphabet", "places"),
}
"""What each argument must be, by its name: the same name means the same in every statistic."""
