"""What may be named as the frame of a task: a kind of frame, or a text of the user's with a place for the task."""

from __future__ import annotations

from argparse import ArgumentTypeError

from lm_audit.errors import UsageError
from lm_audit.shared.number_checks import shown_shortly

PLACE = "{task_template}"
KINDS = ("base", "chat", "auto")


def check_template(text: str) -> None:
    """``UsageError`` for what is neither a kind nor a text that holds the place once."""
    if text not in KINDS and text.count(PLACE) != 1:
        raise UsageError(
            f"template {shown_shortly(text)}: expected {', '.join(KINDS)}, or a text that holds {PLACE} once"
        )


def template_text(text: str) -> str:
    """A type for ``argparse`` and ``AuditOption``: the text, if it can be a template."""
    try:
        check_template(text)
    except UsageError as error:
        raise ArgumentTypeError(str(error)) from error
    return text
