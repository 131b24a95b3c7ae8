"""Options of pytest and its plugins that would end in their traceback: told in a line, before any case runs.

``--junitxml`` and ``--html`` are written when a run of hours has ended.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from lm_audit.errors import UsageError
from lm_audit.shared.textfiles.outputs import check_output_folder
from lm_audit.shared.textfiles.paths import is_folder, is_there

_FILES = {"--junitxml": "xmlpath", "--html": "htmlpath", "--log-file": "log_file"}
_KINDS = ("popen", "ssh", "vagrant_ssh", "socket", "via")


def refuse_unusable(config: pytest.Config) -> None:
    """``UsageError`` for files that cannot be written, a ``--basetemp`` that is no folder, unknown ``--tx``."""
    for option, name in _FILES.items():
        refuse_unwritable(getattr(config.option, name, None), option)
    results = getattr(config.option, "allure_report_dir", None)
    if results:
        check_output_folder(os.path.abspath(str(results)), "--alluredir")
    folder = getattr(config.option, "basetemp", None)
    if folder:
        path = Path(os.path.abspath(str(folder)))
        if is_there(path) and not is_folder(path):
            raise UsageError(f"--basetemp {str(folder)!r:.200}: is no folder, and pytest would remove it")
        check_output_folder(path.parent, "--basetemp")
    for spec in getattr(config.option, "tx", None) or ():
        _check_gateway(str(spec))


def refuse_unwritable(named: object, option: str, folder_is_made: bool = True) -> None:
    """``UsageError`` where ``named`` is given and no file that can be written, its folder made where that is so."""
    if not named:
        return
    path = Path(os.path.abspath(os.path.expanduser(os.path.expandvars(str(named)))))
    if is_folder(path):
        raise UsageError(f"{option} {str(path)!r:.200}: is a folder; name a file in it")
    if not is_there(path):
        if not folder_is_made and not is_folder(path.parent):
            raise UsageError(f"{option} {str(path)!r:.200}: there is no folder {str(path.parent)!r:.200}")
        check_output_folder(path.parent, option)
        return
    if stat.S_ISFIFO(path.stat().st_mode):
        return  # Whoever reads it may come yet.
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, b"")  # a device may be full
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UsageError(f"{option} {str(path)!r:.200}: cannot be written: {error.strerror or error}") from error


def _check_gateway(spec: str) -> None:
    """What xdist would find out while it starts its workers, in a traceback of its own."""
    count, star, rest = spec.partition("*")
    parts = [part.partition("=") for part in (rest if star and count.strip().isdigit() else spec).split("//")]
    said = {key: value if equals else "yes" for key, equals, value in parts}
    if not any(said.get(kind) for kind in _KINDS):
        raise UsageError(
            f"--tx {spec!r:.200}: names no kind of worker; write popen, 2*popen, ssh=HOST or socket=HOST:PORT"
        )
    python = said.get("python", "").partition(" ")[0]
    if "popen" in said and python and shutil.which(python) is None:
        raise UsageError(f"--tx {spec!r:.200}: there is no program {python!r:.200}")
    if said.get("nice") and not said["nice"].removeprefix("-").isdecimal():
        raise UsageError(f"--tx {spec!r:.200}: nice is {said['nice']!r:.60}; expected a whole number")
