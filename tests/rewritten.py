"""Test modules rewritten by pytest, once for all workers: each would rewrite all of them in a checkout that is new."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

FEWEST = 30
"""Below that a fork does not pay."""


def compiled(path: Path) -> Path:
    """Where pytest keeps a module with rewritten assertions."""
    return rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"


def rewrite_all(config: pytest.Config, folders: Sequence[Path], processes: int) -> int:
    """Rewrite the test modules below ``folders`` of which pytest has kept nothing; how many there were."""
    found = [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]
    new = [path for path in found if not compiled(path).exists()]
    if sys.dont_write_bytecode or len(new) < FEWEST:
        return 0
    children = []
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            try:
                for path in new[number::processes]:
                    with contextlib.suppress(Exception):  # Of what cannot be rewritten, a worker will tell.
                        _rewrite(config, path)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    return len(new)


def _rewrite(config: pytest.Config, path: Path) -> None:
    digest, code = rewrite._rewrite_test(path, config)
    compiled(path).parent.mkdir(exist_ok=True)
    rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, compiled(path))
