"""A path as an option of a command gives it."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from pathlib import Path

from lm_audit.shared.home import from_home
from lm_audit.shared.visible import is_blank


def given_path(text: str) -> Path:
    """The path, with ``~`` replaced.

    ``ArgumentTypeError`` where it is blank (an unset variable), an address, in a home that is none, or holds what no
    name can. The first three would name a folder here: the one that the command is called in, ``s3:``, or ``~name``.
    """
    if is_blank(text):
        raise ArgumentTypeError(f"{text!r} names no file or folder")
    if "\0" in text:
        raise ArgumentTypeError(f"{text!r:.200} holds a NUL, which no name of a file can")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise ArgumentTypeError(f"{text!r:.200} is no name of a file: {error.reason}") from error
    if "://" in text:
        raise ArgumentTypeError(f"{text!r:.200} is an address; name a file or folder of this machine")
    path = from_home(text)
    if str(path).startswith("~"):
        raise ArgumentTypeError(f"{text!r:.200}: there is no such home; give the whole path, or ./{text:.200}")
    return path
