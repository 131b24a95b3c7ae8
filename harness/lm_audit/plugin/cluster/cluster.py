"""The only module that speaks to Ray: joins or starts a cluster, places actors, waits for their answers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

from lm_audit.errors import UsageError
from lm_audit.plugin.cluster.node.actor import SessionActor
from lm_audit.plugin.cluster.orders import Message, Order
from lm_audit.plugin.cluster.places import Kind, Node
from lm_audit.plugin.parallel.threads import THREAD_VARIABLES

PATIENCE_S = 2.0
"""How long an actor waits for news before it answers that there are none."""

_OBJECT_STORE = 100 << 20
_CONNECT_S = 10.0
_PASSED = (
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
)


def passed_environment(threads: str) -> dict[str, str]:
    """What of the caller's environment the workers have as well, with the number of threads of each."""
    passed = (*_PASSED, *THREAD_VARIABLES)
    found = {name: os.environ[name] for name in os.environ if name in passed or name.startswith("LM_AUDIT_")}
    return found | {"OMP_NUM_THREADS": threads}


def import_ray() -> Any:
    """Ray, or ``UsageError`` that says how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Nothing is sent to anybody.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--ray needs Ray ({error}); install it: pip install 'pytest-lm-audit[ray]'") from error
    return ray


class Cluster:
    """A connection to a cluster; ``local`` starts one that ends with the run."""

    def __init__(self, address: str, working: Path, package: Path, timeout_s: float):
        self._ray = import_ray()
        if self._ray.is_initialized():
            raise UsageError("--ray: this process is connected to Ray already; leave that to the option")
        given: dict[str, Any] = {
            "runtime_env": {"working_dir": str(working), "py_modules": [str(package)]},
            "log_to_driver": False,
            "logging_level": "CRITICAL",
            "include_dashboard": False,
        }
        if address == "local":
            given |= {"address": "local", "object_store_memory": _OBJECT_STORE, "num_cpus": _cores()}
        else:
            given |= {"address": address}
            del given["include_dashboard"]
            _probe(address, min(timeout_s, _CONNECT_S))
        with _own_signals():
            try:
                self._ray.init(**given)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                raise UsageError(
                    f"--ray {address}: no connection to a cluster: {_in_one_line(error)}{_advice()}"
                ) from error

    def nodes(self) -> list[Node]:
        """The nodes that are alive."""
        return [
            Node(entry["NodeID"], entry["NodeManagerHostname"], dict(entry["Resources"]))
            for entry in self._ray.nodes()
            if entry["Alive"]
        ]

    def free(self) -> dict[str, float]:
        """What of the cluster's resources nobody has taken."""
        found: dict[str, float] = self._ray.available_resources()
        return found

    def place(self, kind: Kind, node: str | None) -> Remote:
        """Ask for an actor on a node, or on any; it waits until there is room."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = "SPREAD" if node is None else NodeAffinitySchedulingStrategy(node, soft=False)
        made = self._ray.remote(SessionActor).options(
            num_cpus=kind.cpus,
            num_gpus=kind.gpus,
            memory=kind.memory or None,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=strategy,
        )
        return Remote(self._ray, made.remote())

    def wait(self, answers: Iterable[Any], timeout_s: float) -> list[Any]:
        """Those answers that have come, as soon as there is one."""
        waiting = list(answers)
        if not waiting:
            return []
        ready, rest = self._ray.wait(waiting, num_returns=1, timeout=timeout_s)
        more = self._ray.wait(rest, num_returns=len(rest), timeout=0)[0] if ready and rest else []
        return [*ready, *more]

    def answer(self, reference: Any) -> Any:
        """What an answer says; ``WorkerLost`` where its actor is gone."""
        from ray.exceptions import RayError

        try:
            return self._ray.get(reference)
        except RayError as error:
            raise WorkerLost(_first_line(error)) from error

    def close(self) -> None:
        """Leave the cluster; one of its own ends."""
        self._ray.shutdown()


class WorkerLost(Exception):
    """An actor is gone."""


class Remote:
    """An actor of the cluster; its methods give references, for :meth:`Cluster.wait`."""

    def __init__(self, ray: Any, handle: Any):
        self._ray = ray
        self._handle = handle

    def hello(self) -> Any:
        """See :meth:`SessionActor.hello`."""
        return self._handle.hello.remote()

    def clock(self) -> Any:
        """See :meth:`SessionActor.clock`."""
        return self._handle.clock.remote()

    def begin(self, order: Order) -> Any:
        """See :meth:`SessionActor.begin`."""
        return self._handle.begin.remote(order)

    def exchange(self, messages: list[Message], patience_s: float = PATIENCE_S) -> Any:
        """See :meth:`SessionActor.exchange`."""
        return self._handle.exchange.remote(messages, patience_s)

    def close(self) -> Any:
        """See :meth:`SessionActor.close`."""
        return self._handle.close.remote()

    def kill(self) -> None:
        """End the actor at once, and take back a request for one that was not placed."""
        with contextlib.suppress(Exception):
            self._ray.kill(self._handle, no_restart=True)


def _cores() -> int:
    from lm_audit.plugin.parallel.threads import usable_cores

    return usable_cores()


def _probe(address: str, timeout_s: float) -> None:
    """An address where nobody answers must not hold the run up."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not colon or not port.isdecimal():
        raise UsageError(f"--ray {address!r}: write auto, local or HOST:PORT, for example --ray 10.0.0.5:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s).close()
    except OSError as error:
        raise UsageError(f"--ray {address}: nobody answers there ({error.strerror or error})") from error


@contextlib.contextmanager
def _own_signals() -> Generator[None]:
    """Ray takes SIGTERM for itself; a run must end with its report."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # Not the main thread, where nothing was changed either.
            for number, handler in before.items():
                signal.signal(number, handler)


def _advice() -> str:
    """Ray asks a client for a token only where the variable says so, and a client without one is told little."""
    return "" if os.environ.get("RAY_AUTH_MODE") else "; one that asks for a token needs RAY_AUTH_MODE=token here"


def _in_one_line(error: BaseException) -> str:
    """All that Ray says: of another version it names both over several lines."""
    return " ".join(str(error).split())[:600] or type(error).__name__


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
