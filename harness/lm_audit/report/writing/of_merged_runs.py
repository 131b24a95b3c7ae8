"""``lm-audit merge``: one run of many."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from lm_audit.shared.given_path import given_path
from lm_audit.shared.textfiles.outputs import check_output_folder


def register(subparsers: Any) -> None:
    """Add the sub-command ``merge``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "merge",
        help="make one run of many, for example of shards",
        description="Make one run of the parts of a run (pytest --shard i/n). The parts stay as they are.",
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="a run folder, a run id under the reports folder, or latest"
    )
    parser.add_argument(
        "-o", "--output", type=given_path, metavar="DIR", help="folder of the new run (default: a new run id)"
    )
    parser.add_argument("--reports", type=given_path, default=Path("reports"), metavar="DIR", help="default: reports")
    parser.add_argument("--partial", action="store_true", help="merge although shards are missing")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Merge, write the reports of the new run, say where it is; returns the exit code."""
    from lm_audit.runstore.layout import new_run_id
    from lm_audit.runstore.merging.merge import merge_runs
    from lm_audit.runstore.named import find_run

    if args.output is not None:
        check_output_folder(args.output.absolute().parent, "-o")
    folders = [find_run(name, args.reports) for name in args.runs]
    out = args.output or folders[0].parent / new_run_id()
    merged = merge_runs(folders, out, partial=args.partial)
    if merged.missing_shards:
        print(f"warning: without shards {', '.join(map(str, merged.missing_shards))}", file=sys.stderr)
    _project(merged.folder)
    print(f"merged {len(folders)} runs, {merged.cases} cases: {merged.folder}")
    return 0


def _project(folder: Path) -> None:
    """Write the reports; a failure there is told and leaves the merged run."""
    try:
        from lm_audit.report.writing.of_run import warn_of_damage, write_all

        warn_of_damage(write_all(folder).damaged)
    except Exception as error:
        print(f"the report could not be written ({type(error).__name__}: {error})", file=sys.stderr)
