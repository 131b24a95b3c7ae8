"""Threads and waiting of the numeric libraries, set before any of them is imported.

With two busy processes on two cores, spinning OpenMP threads made the same scoring job four times slower than passive
ones (40 s against 9 s); passive waiting costs an idle machine about a tenth. What the user has set is never changed.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

import pytest

from lm_audit.plugin.cluster.options import on_ray
from lm_audit.plugin.compat import workers_asked_for

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""What numeric libraries read their number of threads from; the last digits of sums hang on it."""

CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """The cores that this process may use: its affinity mask, cut to the container's CPU quota; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, cpu_quota(CGROUP_LIMIT))))


def cpu_quota(file: Path) -> float:
    """CPUs that a cgroup (version 2) grants, infinity without a limit."""
    try:
        quota, period = file.read_text(encoding="ascii").split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def thread_settings(environment: MutableMapping[str, str], workers: int, cores: int) -> dict[str, str]:
    """What to add to ``environment`` for one of so many workers; nothing that the user has set."""
    wanted = {"OMP_NUM_THREADS": str(max(1, cores // max(1, workers))), "OMP_WAIT_POLICY": "PASSIVE"}
    return {name: value for name, value in wanted.items() if name not in environment}


def worker_threads(config: pytest.Config) -> str:
    """With how many threads the cases of a run compute, as asked of the process that begins the run."""
    if told := os.environ.get("OMP_NUM_THREADS"):
        return told
    if on_ray(config):
        return str(config.getoption("lm_audit_cpus_per_worker"))
    workers = len(getattr(config.option, "tx", None) or ()) and workers_asked_for(config)
    return thread_settings({}, workers, usable_cores())["OMP_NUM_THREADS"]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set threads and waiting in a worker, or in a run without workers; the controller computes nothing."""
    worker = getattr(config, "workerinput", None)
    if worker is None and (getattr(config.option, "tx", None) or on_ray(config)):
        return
    workers = int(worker["workercount"]) if worker is not None else 1
    settings = thread_settings(os.environ, workers, usable_cores())
    os.environ.update(settings)
    if "torch" in sys.modules and "OMP_NUM_THREADS" in settings:  # Imported by a conftest: too late for the variable.
        sys.modules["torch"].set_num_threads(int(settings["OMP_NUM_THREADS"]))
