"""How case ids and metric names are shortened for reading; the full ones stay visible beside them."""

from __future__ import annotations

import hashlib
import re

from lm_audit.runstore.records import CaseRecord
from lm_audit.shared.visible import visible as visible


def case_label(case: CaseRecord) -> str:
    """The case without path, model and device: ``test_x[case]`` becomes ``x / case``."""
    _, _, tail = case.case_id.rpartition("::")
    test, bracket, parameter = tail.partition("[")
    parameter = parameter.removesuffix("]") if bracket else ""
    parameter = "" if parameter == case.ran_on else parameter.removeprefix(f"{case.ran_on}-")
    words = test.removeprefix("test_").replace("_", " ")
    return f"{words} \u203a {parameter}" if parameter else words


def tail(case_id: str) -> str:
    """A case id without the path of its file."""
    return case_id.partition("[")[0].rpartition("::")[2] + "".join(case_id.partition("[")[1:])


def metric_label(name: str, audit: str | None) -> str:
    """The metric without its audit's prefix, in words: ``bias.max_min_disparity`` becomes ``max min disparity``."""
    head, dot, tail = name.partition(".")
    short = tail if dot and audit and head == audit else name
    return short.replace("_", " ")


def anchor(kind: str, name: str) -> str:
    """A stable, safe fragment id; equal names give equal ids, so links survive a rebuilt report.

    All cases of a test may begin alike, so that the digest alone tells thousands of them apart: item rows hang on it.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{kind}-{slug}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
