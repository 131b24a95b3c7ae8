"""Variables of the environment that would fail in the middle of a run, most in words that do not name them."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lm_audit.errors import UsageError
from lm_audit.models.files.disk_cache import CACHE_VARIABLE, cache_dir
from lm_audit.shared.number_checks import real_number, shown_shortly, whole_number
from lm_audit.shared.textfiles import is_folder

Found = TypeVar("Found")

BUDGET_VARIABLE = "LM_AUDIT_MODEL_GIB"
"""Sets how much memory a process may fill with models; by default half of what is free, divided among the workers."""
_READ_AT_IMPORT = ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT")
"""Whole numbers for huggingface_hub, without which no model and no tokenizer loads."""


def refuse_environment() -> None:
    """``UsageError`` naming the first variable that cannot be used."""
    if sys.flags.optimize > 1:
        raise UsageError(
            "python -OO (PYTHONOPTIMIZE=2) leaves out docstrings, without which transformers loads no model"
        )
    named_budget()
    for name in _READ_AT_IMPORT:
        if os.environ.get(name) is not None:
            _number(name, whole_number(0))
    folder = cache_dir()  # says what is wrong with a home that is none
    there = next((place for place in (folder, *folder.absolute().parents) if os.path.lexists(place)), Path("/"))
    if os.environ.get(CACHE_VARIABLE) and not is_folder(there):
        raise UsageError(f"{CACHE_VARIABLE}={shown_shortly(str(folder))}: {shown_shortly(str(there))} is no folder")


def named_budget() -> float | None:
    """GiB of models that :data:`BUDGET_VARIABLE` allows a process, ``None`` where it is not set."""
    if os.environ.get(BUDGET_VARIABLE) is None:
        return None
    return _number(BUDGET_VARIABLE, real_number(above=0, most=2**30, unit="GiB"))


def _number(name: str, parse: Callable[[str], Found]) -> Found:
    try:
        return parse(os.environ[name])
    except ArgumentTypeError as error:
        raise UsageError(f"{name}: {error}; unset it, or give it one") from error
