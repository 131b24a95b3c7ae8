"""Names that arguments and functions bore before 1.0, taken with a warning until then."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def former_arguments(**now: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that takes an argument by its former name too; ``now`` gives, for each former name, that of today.

    The former name gives a ``DeprecationWarning`` with the name to use. Raises ``TypeError``, like any call with an
    argument twice, where both names are given.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: Any, **keywords: Any) -> R:
            for former, name in now.items():
                if former in keywords:
                    if name in keywords:
                        raise TypeError(f"{function.__name__}() got {former!r} and {name!r}, two names of one argument")
                    warnings.warn(
                        f"{function.__name__}({former}=...) is now {name}=...", DeprecationWarning, stacklevel=2
                    )
                    keywords[name] = keywords.pop(former)
            return function(*args, **keywords)

        return cast("Callable[P, R]", called)

    return decorate


def with_former(package: str, getattr_: Callable[[str], object], former: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of ``package`` that also knows ``former`` names; their use gives a ``DeprecationWarning``."""

    def known(name: str) -> object:
        if name not in former:
            return getattr_(name)
        warnings.warn(f"{package}.{name} is now {former[name]}", DeprecationWarning, stacklevel=2)
        return getattr_(former[name])

    return known
