"""Device slots: inside the caller's devices, evenly shared, and handed on when a worker is replaced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lm_audit.plugin.parallel.device_slots import DeviceSlots, places_devices_itself, visible_devices
from tests.plugin.toy_run import run_fresh, write_project

SOURCE = """
import os, signal, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("index", range(8))
def test_device(index, evidence):
    line = f"{os.environ['PYTEST_XDIST_WORKER']} {os.environ.get('CUDA_VISIBLE_DEVICES')}\\n"
    with Path(__file__).with_name("devices.txt").open("a") as file:
        file.write(line)
    time.sleep(0.05)
    if index == 2:
        os.kill(os.getpid(), signal.SIGKILL)
"""


TWO_DEVICES = """
from lm_audit.plugin.models import devices

devices.present, devices.cuda_count = (lambda: frozenset({"cpu", "cuda"})), (lambda: 2)
"""


@pytest.mark.parametrize(
    ("environment", "count", "expected"),
    [
        ({}, 0, ()),
        ({}, 2, ("0", "1")),
        ({"CUDA_VISIBLE_DEVICES": ""}, 2, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 2, ()),
        ({"CUDA_VISIBLE_DEVICES": "3,5"}, 2, ("3", "5")),
        ({"CUDA_VISIBLE_DEVICES": " 3 , 5 "}, 0, ("3", "5")),
        ({"CUDA_VISIBLE_DEVICES": "3,-1,5"}, 1, ("3",)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8932f937,MIG-1b2c"}, 2, ("GPU-8932f937", "MIG-1b2c")),
        ({"CUDA_VISIBLE_DEVICES": "0,9"}, 1, ("0",)),
    ],
)
def test_what_the_caller_made_visible(environment: dict[str, str], count: int, expected: tuple[str, ...]) -> None:
    assert visible_devices(environment, count) == expected


def test_devices_are_shared_evenly() -> None:
    slots = DeviceSlots(["4", "7"])
    assert [slots.take(f"gw{index}") for index in range(4)] == ["4", "7", "4", "7"]
    slots.give_back("gw1")
    assert slots.take("gw4") == "7"
    slots.give_back("never there")


def test_no_device_no_slot() -> None:
    slots = DeviceSlots([])
    assert slots.take("gw0") is None
    slots.give_back("gw0")


def test_numbered_devices_are_left_to_the_user() -> None:
    assert places_devices_itself(["cpu", "cuda:1"])
    assert not places_devices_itself(["cpu", "cuda", "mps"])


def test_a_replacement_takes_the_freed_slot(tmp_path: Path) -> None:
    outcome = run_fresh(write_project(tmp_path, test_toy=SOURCE), "-n", "2", CUDA_VISIBLE_DEVICES="4,GPU-ab12")
    assert outcome.counts == {"failed": 1, "passed": 7}, outcome.output
    seen = Counter((tmp_path / "devices.txt").read_text(encoding="utf-8").splitlines())
    by_worker = dict(line.split() for line in seen)
    assert set(by_worker.values()) == {"4", "GPU-ab12"}
    assert len(seen) == len(by_worker), "a worker stays on its device"
    if "gw2" in by_worker:  # The other worker may have finished everything before the replacement was up.
        assert by_worker["gw2"] in {by_worker["gw0"], by_worker["gw1"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--device", "cuda", "--device-map", "auto"),
        # Which devices are numbered is told above, without workers.
        ("--device", "cuda:1"),
    ],
)
def test_devices_that_are_numbered_or_needed_all_are_not_hidden_from_workers(
    tmp_path: Path, words: tuple[str, str] | tuple[str, str, str, str]
) -> None:
    folder = write_project(tmp_path, test_toy=SOURCE.replace("if index == 2", "if False"))
    with (folder / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(TWO_DEVICES)
    run_fresh(folder, "-n", "2", *words, CUDA_VISIBLE_DEVICES="4,5")
    lines = (tmp_path / "devices.txt").read_text(encoding="utf-8").split("\n")
    assert {line.split()[1] for line in lines if line} == {"4,5"}
