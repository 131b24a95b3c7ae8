"""What a case needs loaded, read from its id: the controller under xdist sees nothing but ids."""

from __future__ import annotations

import re

_MODEL_AT_DEVICE = re.compile(r"^([^@\[\]]+@(?:cpu|mps|cuda(?::\d+)?))(?:-|\]$)")


def group_of(case_id: str) -> str | None:
    """``MODEL@DEVICE`` of ``path::test_x[MODEL@DEVICE-case]``, None for a case without a model.

    A case whose own name holds an ``@`` is not mistaken for one with a model: a device must follow.
    """
    _, _, test = case_id.partition("::")
    _, bracket, parameters = test.partition("[")
    found = _MODEL_AT_DEVICE.match(parameters) if bracket else None
    return found.group(1) if found else None
