"""Device slots: the controller hands each worker one of the CUDA devices that the caller made visible.

Slots are entries of the caller's ``CUDA_VISIBLE_DEVICES`` (indices or UUIDs), so that a job on a shared machine stays
on its own devices. A worker's number says nothing about its slot: the replacement of a crashed worker has a new number,
and takes the slot that was freed.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest

VARIABLE = "CUDA_VISIBLE_DEVICES"

slots_key = pytest.StashKey["DeviceSlots"]()


class DeviceSlots:
    """Hands out devices; with more holders than devices they share, evenly."""

    def __init__(self, visible: Sequence[str]) -> None:
        self.visible = tuple(visible)
        self._holders: dict[Hashable, str] = {}

    def take(self, holder: Hashable) -> str | None:
        """The device with the fewest holders, the earliest of equals; None where there is no device."""
        if not self.visible:
            return None
        taken = list(self._holders.values())
        slot = min(self.visible, key=taken.count)
        self._holders[holder] = slot
        return slot

    def give_back(self, holder: Hashable) -> None:
        """Free the holder's device; a holder without one is none of our business."""
        self._holders.pop(holder, None)


def visible_devices(environment: Mapping[str, str], count: int) -> tuple[str, ...]:
    """The CUDA devices that a process may use, as entries for ``CUDA_VISIBLE_DEVICES``.

    ``count`` is how many the driver shows, 0 without one. As in CUDA, an invalid entry (``-1``) ends the list.
    """
    named = environment.get(VARIABLE)
    if named is None:
        return tuple(str(index) for index in range(count))
    entries: list[str] = []
    for entry in (part.strip() for part in named.split(",")):
        if entry in ("", "-1"):
            break
        entries.append(entry)
    distinct = tuple(dict.fromkeys(entries))
    return distinct[:count] if count else distinct


def places_devices_itself(devices: Sequence[str]) -> bool:
    """Whether the user numbers CUDA devices (``cuda:1``), which a worker that sees a single one could not find."""
    return any(device.startswith("cuda:") for device in devices)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a new worker its slot."""
    slots = _slots(node.config)
    slot = slots.take(node.gateway.id)
    if slot is not None:
        node.workerinput["device_slot"] = slot


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the slot back; xdist calls this before it sets up the replacement."""
    _slots(node.config).give_back(node.gateway.id)


def pytest_lm_audit_planned(session: pytest.Session) -> None:
    """Confine a worker that has audit cases to its slot, before CUDA is initialised."""
    slot = getattr(session.config, "workerinput", {}).get("device_slot")
    if slot is not None:
        os.environ[VARIABLE] = slot


def _slots(config: pytest.Config) -> DeviceSlots:
    if slots_key not in config.stash:
        from lm_audit.plugin.models.devices import cuda_count

        numbered = places_devices_itself(config.getoption("lm_audit_device", None) or ())
        # A model that is spread over devices needs all of them in each worker.
        everywhere = numbered or config.getoption("lm_audit_device_map", None) is not None
        config.stash[slots_key] = DeviceSlots(() if everywhere else visible_devices(os.environ, cuda_count()))
    return config.stash[slots_key]
