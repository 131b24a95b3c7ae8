"""The scripts of ``benchmarks/``, which are in no package, as modules: tests take short forms of their simulations."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def benchmark_script(name: str) -> Any:
    """The script called ``name`` as a module, which finds those beside it."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
