"""The workflow file for GitHub and .ci/run: valid, with targets that the Makefile has, in versions that are allowed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
ACTION = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)?@v\d+")


def made(text: str) -> set[str]:
    """The targets that a script has made."""
    calls = re.findall(r"^\s*make ([a-z][a-z -]*)", text, re.MULTILINE)
    return {target for call in calls for target in call.split()}


def unknown(workflow: dict[Any, Any]) -> list[str]:
    """What GitHub or make would not know: jobs without steps, steps that do nothing, targets, forms of actions."""
    found = []
    for name, job in workflow["jobs"].items():
        if not job.get("runs-on") or not job.get("steps"):
            found.append(f"{name}: no machine or no steps")
        for step in job.get("steps", ()):
            if ("uses" in step) == ("run" in step):
                found.append(f"{name}: a step either uses an action or runs a command, not {step}")
            if not ACTION.fullmatch(step.get("uses", "a/b@v1")):
                found.append(f"{name}: {step['uses']} names no version of an action")
            found += [f"{name}: no target {target}" for target in made(step.get("run", "")) - TARGETS]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_is_there(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"push", "pull_request"} <= set(workflow[True])  # YAML reads "on" as a truth value.
    assert workflow["jobs"] and unknown(workflow) == []
    versions = [one for job in workflow["jobs"].values()
                for one in job.get("strategy", {}).get("matrix", {}).get("python-version", ())]  # fmt: skip
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
    assert all(isinstance(one, str) and tuple(map(int, one.split("."))) >= least for one in versions)


def test_a_workflow_runs_all_that_ci_runs() -> None:
    ci = made((ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert {"docs", "audit", "test"} <= ci <= TARGETS
    steps = "\n".join(path.read_text(encoding="utf-8").replace("- run: ", "") for path in WORKFLOWS)
    assert ci - {"setup", "model"} <= made(steps)  # The two are made with the others.


def test_what_would_not_run_is_seen() -> None:
    steps = [{"run": "make adit"}, {"uses": "actions/checkout"}, {"name": "nothing"}]
    assert len(unknown({"jobs": {"one": {"runs-on": "x", "steps": steps}, "two": {"steps": []}}})) == 4
