"""The process that draws: it imports the native chart library, and nothing of this package.

Reads one request a line from standard input and answers each with one line of JSON. What ends this process costs the
figure that it was drawing.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import sys
from typing import Any

PATIENCE = 120
"""Seconds after which this process ends itself over one request: whoever asked is gone, or would have ended it."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What ``request`` asks for as JSON: a text under ``ok``, or why there is none under ``error``."""
    import vl_convert

    what, options = request.pop("what"), request.pop("options", {})
    try:
        if what == "bundle":
            return {"ok": vl_convert.javascript_bundle(request["snippet"], **options)}
        spec = json.dumps(request["spec"])
        if what == "png":
            return {"ok": base64.b64encode(vl_convert.vegalite_to_png(spec, **options)).decode("ascii")}
        return {"ok": vl_convert.vegalite_to_svg(spec, **options)}
    except Exception as error:  # the converter raises bare RuntimeError and ValueError
        lines = [line for line in str(error).splitlines() if line.strip()]
        return {"error": (lines[0] if lines else type(error).__name__)[:300]}


def resident_kib() -> int:
    """The memory of this process now; its peak, where the system does not tell.

    On Linux the peak is no measure: a process begins with that of the one that started it, which may hold a model.
    """
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize() // 1024
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak


def main() -> None:
    """Answer until there is nobody to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # The JavaScript engine reserves far more than it uses.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # Whatever a native library prints is no answer.
    for line in sys.stdin.buffer:
        signal.alarm(PATIENCE)
        told = answer(json.loads(line))
        told["rss_kib"] = resident_kib()
        out.write(json.dumps(told) + "\n")
        out.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()
