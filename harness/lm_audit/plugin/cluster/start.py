"""``--ray``: what cannot go with it is refused, and the loop that runs cases elsewhere takes the place of pytest's."""

from __future__ import annotations

import pytest

from lm_audit.plugin.cluster.options import on_ray, promised_devices
from lm_audit.plugin.parallel.device_slots import places_devices_itself


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot go together, and register the loop that runs cases elsewhere."""
    if not on_ray(config):
        return
    problem = _problem(config)
    if problem:
        raise pytest.UsageError(problem)
    from lm_audit.plugin.cluster import loop

    config.pluginmanager.register(loop, "lm_audit.plugin.cluster.loop")


def _problem(config: pytest.Config) -> str | None:
    address = config.getoption("lm_audit_ray")
    if not address.strip():
        return "--ray '': names nothing; write --ray auto, --ray local or --ray HOST:PORT"
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "tx", None):
        return "--ray and -n are two ways to run cases elsewhere: give one of them (--ray-workers N limits the workers)"
    if getattr(config.option, "usepdb", False):
        return "--pdb needs the case in this process: leave out --ray"
    if places_devices_itself(config.getoption("lm_audit_device") or ()):
        return "--device cuda:N with --ray: a worker numbers its own GPUs from 0; write --device cuda"
    device_map, gpus = config.getoption("lm_audit_device_map"), config.getoption("lm_audit_gpus_per_worker") or 1
    if device_map is not None and "cuda" in promised_devices(config) and gpus < 2:
        return (
            f"--device-map {device_map} with --ray: a model is spread over the GPUs of one worker, which has "
            f"{gpus:g} of them; write --gpus-per-worker N, 2 or more, or leave out --device-map"
        )
    return None
