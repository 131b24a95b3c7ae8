"""``--ray`` and what belongs to it; the cluster itself is imported only where the option is given."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from lm_audit.plugin.options.naming import declare
from lm_audit.shared.number_checks import real_number, whole_number

DEFAULT_TIMEOUT_S = 300.0


MOST = 10**6
"""More workers, CPUs or GPUs than any cluster has."""
_seconds = real_number(above=0, most=1e9, unit="seconds")
_count = whole_number(1, MOST)


def _gpus(text: str) -> float:
    gpus = real_number(above=0, most=MOST)(text)
    if gpus > 1 and not gpus.is_integer():
        raise ArgumentTypeError(f"{text!r}: expected a fraction above 0 and up to 1, or a whole number")
    return gpus


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--ray``, how its workers look, and how long to wait for them."""
    group = parser.getgroup("lm-audit-ray", "audits on a Ray cluster")
    declare(
        group,
        "--ray",
        dest="lm_audit_ray",
        metavar="auto|local|ADDRESS",
        help="run the cases on a Ray cluster: the one this machine belongs to (auto), one of its own (local), or the "
        "one at HOST:PORT; needs the extra [ray]",
    )
    declare(
        group,
        "--ray-timeout",
        dest="lm_audit_ray_timeout",
        type=_seconds,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"with --ray: how long to wait while the cluster gives the run no worker (default {DEFAULT_TIMEOUT_S:g})",
    )
    declare(
        group,
        "--ray-workers",
        dest="lm_audit_ray_workers",
        type=_count,
        metavar="N",
        help="with --ray: at most N workers (default: as many as the cluster's resources allow)",
    )
    declare(
        group,
        "--gpus-per-worker",
        dest="lm_audit_gpus_per_worker",
        type=_gpus,
        metavar="G",
        help="with --ray: GPUs of a worker for cases on CUDA, a whole number or a fraction below 1 (default 1); a case "
        "on the CPU takes none",
    )
    declare(
        group,
        "--cpus-per-worker",
        dest="lm_audit_cpus_per_worker",
        type=_count,
        default=1,
        metavar="N",
        help="with --ray: CPUs, and threads, of a worker (default 1)",
    )
    declare(
        group,
        "--ray-ship",
        dest="lm_audit_ray_ship",
        action="append",
        metavar="PATH",
        help="with --ray: a further file or folder below the rootdir that the cases read; repeatable",
    )


def on_ray(config: pytest.Config) -> bool:
    """Whether this process is the controller of a run on a cluster."""
    return config.getoption("lm_audit_ray", None) is not None and not hasattr(config, "workerinput")


def promised_devices(config: pytest.Config) -> frozenset[str]:
    """The kinds of device that are the cluster's to have, whatever this machine has."""
    if not on_ray(config):
        return frozenset()
    named = [*(config.getoption("lm_audit_device") or ()), *(config.getoption("lm_audit_require_device") or ())]
    cuda = config.getoption("lm_audit_gpus_per_worker") is not None or any(name.startswith("cuda") for name in named)
    return frozenset({"cuda"}) if cuda else frozenset()
