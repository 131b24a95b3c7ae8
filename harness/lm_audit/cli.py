"""``lm-audit``: what is not a test run. Sub-commands are found in the ``commands`` modules of the packages."""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import lm_audit
from lm_audit.audits.registry import audit_packages
from lm_audit.errors import HarnessError

DISTRIBUTION = "pytest-lm-audit"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command; returns its exit code, 2 where the input cannot be used."""
    parser = build_parser()
    words = sys.argv[1:] if arguments is None else arguments
    # argparse takes the two dashes away, and leaves an empty list in place of the value.
    for word in (word for word in words if word.startswith("-") and word.endswith("=--")):
        parser.error(f"{word}: names nothing; give the option a value, or leave it out")
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen) or 0)
    except HarnessError as error:
        print(f"lm-audit: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that is closed to us, a name that no file can have
        if isinstance(error, BrokenPipeError):  # `lm-audit ... | head`
            sys.stderr.close()
            return 141
        where = f"{str(error.filename)[:200]}: " if error.filename else ""
        if not where and _is_gone():
            where = "the folder that this was called in is gone; change into another one: "
        print(f"lm-audit: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _is_gone() -> bool:
    """Whether the folder that this was called in was removed since."""
    try:
        return not os.getcwd()
    except OSError:
        return True


def build_parser() -> argparse.ArgumentParser:
    """The command line of all sub-commands."""
    parser = argparse.ArgumentParser(
        prog="lm-audit",
        description="Work on runs of audits and on their inputs; audits themselves run with: pytest evals",
    )
    parser.add_argument("--version", action="version", version=f"{DISTRIBUTION} {_version()}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in command_modules():
        import_module(name).register(subparsers)
    return parser


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "of a checkout that is not installed"


def command_modules() -> Iterator[str]:
    """The names of the ``commands`` modules, those of the parts of the package before those of the audits."""
    own = (f"lm_audit.{module.name}" for module in pkgutil.iter_modules(lm_audit.__path__) if module.ispkg)
    for package in (*own, *audit_packages().values()):
        if find_spec(f"{package}.commands") is not None:
            yield f"{package}.commands"


if __name__ == "__main__":
    sys.exit(main())
