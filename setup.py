"""Puts the audit cases and their data, which lie beside the package in a checkout, into it when a wheel is built."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithSuite(build_py):
    """``lm_audit/evals`` and ``lm_audit/fixtures`` of a wheel are the checkout's top-level folders, the one source."""

    def run(self) -> None:
        """Build the package, then copy the suite; an editable installation uses the checkout's folders as they lie."""
        super().run()
        if not self.editable_mode:
            self._copy_suite(Path(self.build_lib) / "lm_audit")

    def _copy_suite(self, package: Path) -> None:
        for name in ("evals", "fixtures"):
            shutil.rmtree(package / name, ignore_errors=True)
            shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".*"))
        (package / "evals" / "__init__.py").write_text('"""The audit cases, run with: lm-audit run."""\n')
        shutil.copy(ROOT / "allurerc.json", package / "report" / "allurerc.json")


setup(cmdclass={"build_py": BuildWithSuite})
