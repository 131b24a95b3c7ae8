"""The sub-commands of ``lm-audit`` that ask what a run would do: pytest's arguments, ``--json`` and ``--help``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

Answer = Callable[[Sequence[str], bool], int]
"""Called with the words for pytest and whether JSON is wanted; prints the answer and returns the exit code."""


def add_question(subparsers: Any, name: str, answer: Answer, *, help: str, description: str, options: str) -> None:
    """Add the sub-command ``lm-audit NAME``, which ``answer`` answers.

    All words but ``--json`` and ``--help`` belong to pytest; ``options`` are those that the line of usage shows.
    """
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=help,
        description=description,
        usage=f"lm-audit {name} [--json] {options} ...",
        # With no prefix, argparse keeps its hands off what is pytest's.
        prefix_chars="\0",
        add_help=False,
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)

    def run(chosen: argparse.Namespace) -> int:
        given: list[str] = chosen.arguments
        if {"-h", "--help"}.intersection(given):
            print(parser.format_help(), end="")
            return 0
        return answer([word for word in given if word != "--json"], "--json" in given)

    parser.set_defaults(run=run)
