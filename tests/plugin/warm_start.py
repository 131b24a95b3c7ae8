"""Processes that have their libraries when they start: forked from one that has loaded pytest, torch and transformers.

Importing them takes seconds of every call of pytest on a model, and of every worker of it; hundreds of tests make such
calls. The layers of this package beneath its plugins are loaded, too, unless a call has another path (``package``), and
the page's templates compiled; nothing of them is called before, so that each call reads its options, its environment
and its files itself. What is about a process's own start (threads, devices, signals, what is imported) calls pytest in
a fresh one.

The libraries are loaded once for all processes of a run of the tests (``xdist``): the first that needs a warm process
starts it, and it is forked for each of the others that asks.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "harness" / "lm_audit"
MODEL = PACKAGE / "models" / "toy" / "embedded" / "tiny"
LONGEST = 1 << 20
STARTING_S = 300.0
HERE = b"here"
LOADED = (
    "findings", "gates", "models.files", "models.generation", "models.loading", "models.scoring", "models.text",
    "report.charts", "report.comparison", "report.conclusions", "report.index", "report.page", "report.tables",
    "report.wording", "report.writing", "runstore", "shared", "sources", "stats",
)  # fmt: skip


class WarmStarter:
    """The test's side: has one process forked after the other, and reads what each has printed.

    ``package``: whether they have this package as well, which those must not that have another on their path.
    """

    def __init__(self, *, package: bool = True) -> None:
        self._near = _connected(package)
        self._near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)

    def run(self, words: list[str], folder: Path, variables: dict[str, str], timeout: float) -> tuple[int, str]:
        """Call pytest with ``words``: exit code, and what it wrote to standard output and then to standard error.

        Raises ``subprocess.TimeoutExpired`` after ``timeout`` seconds, when the call has been ended.
        """
        outputs = [os.memfd_create(name) for name in ("stdout", "stderr")]
        try:
            order = {"words": words, "folder": str(folder), "variables": variables}
            socket.send_fds(self._near, [json.dumps(order).encode()], outputs)
            pid = self._answer(None)
            try:
                code = self._answer(timeout)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._answer(None)
                raise subprocess.TimeoutExpired(words, timeout) from None
            return code, "".join(_text(output) for output in outputs)
        finally:
            for output in outputs:
                os.close(output)

    def start(self, words: list[str], folder: Path, variables: dict[str, str]) -> WarmProcess:
        """Call pytest with ``words`` in a process group of its own, and return at once."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reading, writing = os.pipe()
        order = {"words": words, "folder": str(folder), "variables": variables}
        with far:
            socket.send_fds(self._near, [json.dumps(order).encode()], [writing, writing, far.fileno()])
        os.close(writing)
        return WarmProcess(words, near, reading)

    def _answer(self, timeout: float | None) -> int:
        self._near.settimeout(timeout)
        told = self._near.recv(64)
        if not told:
            raise RuntimeError("the warm process has ended; its error stands above, or where the tests were called")
        return int(told)


class WarmProcess:
    """In place of the ``Popen`` of a call: its output and its errors are one text."""

    def __init__(self, words: list[str], told: socket.socket, output: int) -> None:
        self.args, self._told, self._output = words, told, output
        self.pid = int(told.recv(64))
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; ``subprocess.TimeoutExpired`` where it has not ended by then."""
        if self.returncode is None:
            ready, _, _ = select.select([self._told], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = int(self._told.recv(64))
            self._told.close()
        return self.returncode

    def poll(self) -> int | None:
        """The exit code, ``None`` before the end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, None]:
        """What was written by the time that the last of its group has closed the output, and nothing of the errors."""
        until, parts = time.monotonic() + timeout, []
        while self._output >= 0:
            if not select.select([self._output], [], [], max(0.0, until - time.monotonic()))[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            parts.append(os.read(self._output, 1 << 16))
            if not parts[-1]:
                os.close(self._output)
                self._output = -1
        self.wait(max(0.0, until - time.monotonic()))
        return b"".join(parts).decode("utf-8", "replace"), None

    def send_signal(self, number: int) -> None:
        """Send it, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _connected(package: bool) -> socket.socket:
    """A socket to a process of one's own, forked from the warm one of this run of the tests; that may have to start."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    places = [f"\0lm-audit-tests-{run}-{kind}" for kind in ("libraries", "package")]
    until = time.monotonic() + STARTING_S
    while True:
        near = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.settimeout(STARTING_S)
        with contextlib.suppress(ConnectionError):  # Nobody is there, or another is about to be, or has just left.
            near.connect(places[package])
            if near.recv(len(HERE)) == HERE:
                return near
        near.close()
        if LIVING and (code := LIVING[-1][0].poll()) is not None:
            raise RuntimeError(f"the warm process has ended with {code}; its error stands above")
        if not _start(places):
            assert time.monotonic() < until, "the warm process does not start; its error stands above"
            time.sleep(0.05)


def _start(places: list[str]) -> bool:
    """Start the warm process with sockets at these names, unless another has; it ends when this one does."""
    listening = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in places]
    try:
        for one, place in zip(listening, places, strict=True):
            one.bind(place)
            one.listen(64)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        kept |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        tether, theirs = socket.socketpair()
        with theirs:
            passed = [one.fileno() for one in (theirs, *listening)]
            words = [sys.executable, __file__, *map(str, passed)]
            LIVING.append((subprocess.Popen(words, pass_fds=passed, env=kept), tether))
        return True
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    finally:
        for one in listening:
            one.close()


LIVING: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
"""The warm process that this one has started, and what tells it that this one has ended."""


def _text(output: int) -> str:
    os.lseek(output, 0, os.SEEK_SET)
    with os.fdopen(os.dup(output), encoding="utf-8", errors="replace") as file:
        return file.read()


class WarmWorker:
    """In place of the ``Popen`` of a worker of xdist: forked from the controller's own spare process."""

    def __init__(self, spare: socket.socket) -> None:
        worker_in, near_in = os.pipe()
        near_out, worker_out = os.pipe()
        order = {"folder": os.getcwd(), "variables": dict(os.environ)}
        socket.send_fds(spare, [json.dumps(order).encode()], [worker_in, worker_out])
        self.pid = int(spare.recv(64))
        for end in (worker_in, worker_out):
            os.close(end)
        self.stdin, self.stdout = os.fdopen(near_in, "wb"), os.fdopen(near_out, "rb")

    def wait(self) -> int:
        """Return when the process has ended; what its exit code was is told to its parent alone."""
        try:
            watched = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return 0
        select.select([watched], [], [])
        os.close(watched)
        return 0

    def kill(self) -> None:
        """End the process; ``ProcessLookupError`` where it has ended."""
        os.kill(self.pid, signal.SIGKILL)


def _load() -> None:
    """What calls import, and what reading a model makes once a process."""
    import _pytest.config
    import execnet
    import jinja2
    import openai
    import pandas
    import pyarrow.csv
    import pyarrow.parquet
    import rich.console
    import scipy.stats
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    assert all((execnet, jinja2, openai, pandas, pyarrow.csv, pyarrow.parquet, rich.console, scipy.stats))
    _pytest.config.get_config()
    progress: Any = logging
    progress.disable_progress_bar()  # The bar has a thread.
    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # Reading has four.
    AutoTokenizer.from_pretrained(MODEL)
    AutoModelForCausalLM.from_pretrained(MODEL)
    progress.enable_progress_bar()


def _settle() -> None:
    """What makes forking safe and cheap."""
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    others = [name for name in names if name != "jemalloc_bg_thd"]  # pyarrow's, which knows of forks.
    assert len(others) == 1, f"a process with threads cannot be forked safely: {names}"
    gc.collect()
    gc.freeze()  # Or the collector would have every forked process copy what it looks through.


def _load_package() -> None:
    """What most calls import of this package, without the plugins, whose assertions pytest rewrites, and its page."""
    sys.path.insert(0, str(REPOSITORY / "harness"))
    import lm_audit.report.page.rendering as page

    for layer in LOADED:
        for module in pkgutil.walk_packages([str(PACKAGE.joinpath(*layer.split(".")))], f"lm_audit.{layer}."):
            importlib.import_module(module.name)
    for template in (PACKAGE / "report" / "templates").iterdir():
        page.environment().get_template(template.name)
    del sys.path[0]
    early = [name for name in sys.modules if name.startswith("lm_audit.plugin")]
    assert not early, f"pytest must import its plugins itself: {early}"


def _receive(orders: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    told, files, _, _ = socket.recv_fds(orders, LONGEST, 3)
    return (json.loads(told), list(files)) if told else None


def _become(order: dict[str, Any]) -> None:
    """In a forked process: the folder and the environment that were asked for."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["variables"])


def _serve_calls(orders: socket.socket) -> list[str]:
    """Fork a process for every call and tell how it ended; returns in the forked ones, with their words.

    Where a socket for that comes along the process has a group of its own, and nobody waits for it but one beside it.
    """
    while (received := _receive(orders)) is not None:
        order, outputs = received[0], received[1][:2]
        apart = received[1][2] if len(received[1]) > 2 else None
        telling = orders if apart is None else socket.socket(fileno=apart)
        beside = 0 if apart is None else os.fork()
        if beside == 0:
            pid = os.fork()
            if pid == 0:
                orders.close()
                telling.close()
                if apart is not None:
                    os.setpgid(0, 0)
                return _begun(order, outputs)
        for file in outputs:
            os.close(file)
        if beside == 0:
            if apart is not None:  # Whichever of the two is first.
                with contextlib.suppress(OSError):
                    os.setpgid(pid, pid)
            telling.send(str(pid).encode())
            _, status = os.waitpid(pid, 0)
            with contextlib.suppress(BrokenPipeError):
                telling.send(str(os.waitstatus_to_exitcode(status)).encode())
            if apart is not None:
                os._exit(0)
        else:
            telling.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
    os._exit(0)


def _begun(order: dict[str, Any], outputs: list[int]) -> list[str]:
    """In a forked process: its folder, environment and outputs; the words that it was called with."""
    _become(order)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *outputs)):
        os.dup2(file, number)
        os.close(file)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [os.getcwd(), *filter(None, paths), *sys.path[1:]]
    return list(order["words"])


def _serve_workers(orders: socket.socket) -> str:
    """Fork a process for every worker and tell its number; returns in the forked ones, with what they execute."""
    living: set[int] = set()
    while (received := _receive(orders)) is not None:
        order, ends = received
        pid = os.fork()
        if pid == 0:
            orders.close()
            _become(order)
            for number, file in enumerate(ends):
                os.dup2(file, number)
                os.close(file)
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.argv = ["-c"]
            return sys.stdin.readline()
        for file in ends:
            os.close(file)
        orders.send(str(pid).encode())
        living = {other for other in (*living, pid) if os.waitpid(other, os.WNOHANG) == (0, 0)}
    for _ in range(50):  # The controller has gone, and they do.
        living = {pid for pid in living if os.waitpid(pid, os.WNOHANG) == (0, 0)}
        if not living:
            break
        time.sleep(0.01)
    os._exit(0)


def _warm_workers() -> None:
    """Have the workers of this process forked, too: by a spare process beside it, which ends when this one does."""
    import execnet.gateway_base
    import execnet.gateway_io

    spare, orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    beside = os.fork()
    if beside == 0:
        spare.close()
        exec(eval(_serve_workers(orders)), {"__name__": "__main__"})  # What execnet has a new interpreter do.
        _leave(0)
    orders.close()

    @atexit.register
    def end() -> None:
        spare.close()
        os.waitpid(beside, 0)

    class Forked(execnet.gateway_io.Popen2IOMaster):
        def __init__(self, args: list[str], execmodel: Any) -> None:
            self.popen: Any = WarmWorker(spare)
            execnet.gateway_base.Popen2IO.__init__(self, self.popen.stdin, self.popen.stdout, execmodel)

    execnet.gateway_io.Popen2IOMaster = Forked  # type: ignore[misc]


def _leave(code: int) -> NoReturn:
    """End as an interpreter does, except that it does not take its modules down one by one."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _accepted(listening: socket.socket, tether: socket.socket) -> socket.socket:
    """In a process forked for each that connects, its socket; ends this one when the tether does."""
    while True:
        ready, _, _ = select.select([listening, tether], [], [])
        if tether in ready:
            os._exit(0)
        orders, _ = listening.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        if os.fork() == 0:
            listening.close()
            tether.close()
            orders.send(HERE)
            return orders
        orders.close()


def main() -> NoReturn:
    """The warm process, and every process forked from it."""
    tether, bare, packaged = (socket.socket(fileno=int(word)) for word in sys.argv[1:])
    _load()
    _settle()
    if os.fork() == 0:
        packaged.close()
        orders = _accepted(bare, tether)
    else:
        bare.close()
        _load_package()
        _settle()
        orders = _accepted(packaged, tether)
    orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    words = _serve_calls(orders)
    if "-n" in words:
        _warm_workers()
    sys.argv[1:] = words
    try:
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _leave(int(end.code or 0))
    _leave(0)


if __name__ == "__main__":
    main()
