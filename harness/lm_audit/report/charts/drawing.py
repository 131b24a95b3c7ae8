"""Charts are drawn in a process of their own: a chart that ends it, hangs or takes all memory costs that chart only.

One process draws all figures of a report. It is started again after it died, until it has died :data:`TRIES` times in
a row without drawing anything: then drawing is given up at once, with the reason.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError

LIMIT_S = 30.0
"""How long one chart may take; they take some 35 ms."""

TRIES = 3

RECYCLED_KIB = 1_000_000
"""Memory above which a process makes place for a fresh one after it has answered."""

_PROGRAM = Path(__file__).with_name("drawing_process.py")


class DrawingProcess:
    """Asks a process for charts, one after the other; starts it at the first request, or at :meth:`start`."""

    def __init__(self, limit_s: float = LIMIT_S):
        self.limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._deaths = 0
        self._last = ""
        self._lock = threading.Lock()

    def start(self) -> None:
        """Have the process come up while its caller does something else."""
        with self._lock, contextlib.suppress(OSError):
            self._running()

    def ask(self, what: str, **request: object) -> str:
        """The text that the process answers with.

        Raises ``DataError`` where it says that it cannot, where it died or took too long, and where it died of the
        requests before and none has been answered.
        """
        line = json.dumps({"what": what, **request}, allow_nan=False).encode("ascii") + b"\n"
        with self._lock:
            if self._deaths >= TRIES:
                raise DataError(f"no chart can be drawn here: {self._last}")
            told = self._exchange(line)
        if "error" in told:
            raise DataError(f"this chart cannot be drawn: {told['error']}")
        return str(told["ok"])

    def _exchange(self, line: bytes) -> Mapping[str, Any]:
        try:
            process = self._running()
        except OSError as error:
            raise self._died(f"the process that draws cannot be started: {error.strerror or error}") from error
        assert process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self.limit_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line)
                process.stdin.flush()
            answer = process.stdout.readline()
        except BaseException:  # An interrupt: the answer that is still to come must not be taken for the next one's.
            process.kill()
            self._stop()
            raise
        finally:
            timer.cancel()
        try:
            told: Mapping[str, Any] = json.loads(answer)
        except ValueError:
            code = self._stop()
            raise self._died(f"drawing took longer than {self.limit_s:g} s" if late.is_set() else _how(code)) from None
        self._deaths = 0
        if told.get("rss_kib", 0) > RECYCLED_KIB:
            self._stop()
        return told

    def _running(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():  # A fork: the process is its parent's.
            self._owner, self._process = os.getpid(), None
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
                start_new_session=True,
            )
        return self._process

    def _died(self, how: str) -> DataError:
        self._deaths += 1
        self._last = how
        return DataError(f"this chart cannot be drawn: {how}")

    def _stop(self) -> int:
        """End the process; how it ended."""
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin is not None and process.stdout is not None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            return process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def close(self) -> None:
        """End the process, if it is one's own."""
        with self._lock:
            if self._owner == os.getpid():
                if self._process is not None:
                    self._process.kill()
                self._stop()


def _how(code: int) -> str:
    if code >= 0:
        return f"the process that draws ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"the process that draws was ended by {name} (where memory is limited by ulimit -v, charts need more)"


SHARED = DrawingProcess()
"""The process of all figures of this one."""
atexit.register(SHARED.close)
