"""Warnings quote what data sets and models say: pytest prints them, and a terminal obeys what is not written out."""

from __future__ import annotations

import warnings

import pytest

from lm_audit.shared.visible import visible


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage) -> None:
    """Write hidden characters of a warning out before anybody keeps, sends or prints it."""
    text = str(warning_message.message)
    plain = visible(text)
    if plain == text:
        return
    if isinstance(warning_message.message, Warning):
        warning_message.message.args = (plain,)
    if str(warning_message.message) != plain:  # a class with words of its own
        warning_message.message = UserWarning(plain)
