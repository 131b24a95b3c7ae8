"""The console sub-commands of the report: ``report``, ``compare``, ``allure``, and ``merge``, which writes one too."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from lm_audit.report.writing import of_merged_runs as merge_command
from lm_audit.runstore.named import find_run
from lm_audit.shared.given_path import given_path
from lm_audit.shared.number_checks import seed_number, whole_number


def register(subparsers: Any) -> None:
    """Add ``report``, ``compare``, ``allure`` and ``merge`` to the console command."""
    merge_command.register(subparsers)
    report = subparsers.add_parser("report", help="rebuild all reports of a run from its run store alone")
    report.add_argument("which", metavar="RUN", help="a run folder, the id of a run under --reports, or latest")
    report.add_argument("--export", action="append", default=[], choices=("mlflow", "wandb"), help="also send it there")
    report.add_argument("--plots", action="store_true", help="also write each chart as PNG and SVG into plots/")
    _reports_option(report)
    report.set_defaults(run=run_report)
    view = subparsers.add_parser("view", help="serve the reports folder on this machine, with an index that refreshes")
    view.add_argument(
        "--port",
        type=whole_number(0, 65535),
        default=8765,
        help="port on 127.0.0.1 (default 8765; 0: any that is free)",
    )
    _reports_option(view)
    view.set_defaults(run=run_view)
    compare = subparsers.add_parser(
        "compare",
        help="what changed from one run to another; exit code 1 where it got worse",
    )
    compare.add_argument("before", metavar="RUN", help="the run to compare with: a folder, a run id, or latest")
    compare.add_argument("after", metavar="RUN", help="the run that may be better or worse")
    compare.add_argument("--html", type=given_path, metavar="FILE", help="also write the comparison as a page")
    compare.add_argument("--across-models", action="store_true", help="match cases without their model and device")
    compare.add_argument("--seed", type=seed_number(), default=0, help="seed of the bootstrap (default 0)")
    _reports_option(compare)
    compare.set_defaults(run=run_compare)

    allure = subparsers.add_parser("allure", help="build the static Allure report of a run, without its tracking")
    allure.add_argument("which", metavar="RUN", help="a run folder, the id of a run under --reports, or latest")
    allure.add_argument(
        "--allure", type=given_path, default=Path("node_modules/.bin/allure"), help="the allure command"
    )
    allure.add_argument(
        "--config",
        type=given_path,
        help="its configuration (default: allurerc.json of this folder, else the package's)",
    )
    _reports_option(allure)
    allure.set_defaults(run=run_allure)


def _reports_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reports", type=given_path, default=Path("reports"), metavar="DIR", help="where runs are kept"
    )


def run_report(args: argparse.Namespace) -> int:
    """Write all projections of a run and the index of all runs; 0."""
    from lm_audit.report.exporters import check_installed, export
    from lm_audit.report.index.all_runs import write_index
    from lm_audit.report.writing.of_run import warn_of_damage, write_all

    for target in args.export:
        check_installed(target)
    folder = find_run(args.which, args.reports)
    written = write_all(folder)
    warn_of_damage(written.damaged)
    print(written.page)
    print(write_index(folder.parent))
    if args.plots:
        from lm_audit.report.charts.plots import plots_line

        print(plots_line(folder))
    for target in args.export:
        print(export(target, folder))
    return 0


def run_view(args: argparse.Namespace) -> int:
    """Serve the reports folder until Ctrl-C; ``UsageError`` where there is none or the port is taken."""
    from lm_audit.errors import UsageError
    from lm_audit.report.index.serving import ReportsServer

    if not args.reports.is_dir():
        raise UsageError(f"no reports folder at {args.reports}; name it with --reports DIR")
    try:
        server = ReportsServer(args.reports, args.port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on 127.0.0.1:{args.port} ({error}); choose another --port") from error
    print(f"{server.address} (Ctrl-C ends it)", flush=True)
    with server:
        server.serve_forever()
    return 0


def run_compare(args: argparse.Namespace) -> int:
    """Print what changed; 1 where a headline got significantly worse or an audit became void, else 0."""
    from lm_audit.report.comparison.page import render_comparison
    from lm_audit.report.comparison.runs import compare_runs
    from lm_audit.report.comparison.text import comparison_lines
    from lm_audit.report.writing.of_run import write_text
    from lm_audit.runstore.run import read_run

    if args.html:
        _writable(args.html)
    before, after = (read_run(find_run(name, args.reports)) for name in (args.before, args.after))
    comparison = compare_runs(before, after, across_models=args.across_models, seed=args.seed)
    width = shutil.get_terminal_size((120, 40)).columns
    print("\n".join(comparison_lines(comparison, width=width, color=sys.stdout.isatty())))
    if args.html:
        args.html.parent.mkdir(parents=True, exist_ok=True)
        print(write_text(args.html, render_comparison(comparison)))
    return 1 if comparison.failed else 0


def _allure_config() -> Path | None:
    """The configuration of the folder one is in, else the one that an installation brings along."""
    places = (Path("allurerc.json"), Path(__file__).with_name("allurerc.json"))
    return next((place for place in places if place.is_file()), None)


def run_allure(args: argparse.Namespace) -> int:
    """Project the run into Allure results, build the report, strip its tracking; 0."""
    from lm_audit.errors import UsageError
    from lm_audit.report.allure.results import complete_results
    from lm_audit.report.allure.whole_run import strip_analytics
    from lm_audit.report.writing.of_run import warn_of_damage
    from lm_audit.runstore.run import read_run
    from lm_audit.runstore.soundness.beside import damaged_files

    if args.config is not None and not args.config.is_file():
        raise UsageError(f"--config {args.config}: there is no such file")
    if not args.allure.is_file():
        raise UsageError(f"no allure command at {args.allure}; install the pinned one with: npm install")
    folder = find_run(args.which, args.reports)
    results, report = folder / "allure-results", folder / "allure-report"
    _refuse_links(results, report)
    run = read_run(folder, shown=True)
    warn_of_damage((*run.damaged, *damaged_files(run)))
    complete_results(run, results)
    command = [args.allure.resolve(), "generate", results, "--output", report]
    config = args.config or _allure_config()
    if config is not None:
        command += ["--config", config.resolve()]
    try:
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"exit code {error.returncode}"
        raise UsageError(f"the allure command {args.allure} made no report: {reason}") from error
    removed = strip_analytics(report)
    page = report / "awesome" / "index.html"
    print(f"{page if page.is_file() else report} ({removed} tracking scripts removed)")
    return 0


def _refuse_links(*folders: Path) -> None:
    """What is written into the folder of a run stays there, whoever made the folder."""
    from lm_audit.errors import UsageError

    for folder in folders:
        for path in (folder, *(folder.rglob("*") if folder.is_dir() else ())):
            if path.is_symlink():
                raise UsageError(f"{path} is a symbolic link: it is not written through; remove it")
            if path.is_file() and path.stat().st_nlink > 1:
                raise UsageError(f"{path} is the same file as another one (a hard link): it is not written; remove it")


def _writable(file: Path) -> Path:
    """``file``, if it can be written; told before anything is computed."""
    from lm_audit.errors import UsageError
    from lm_audit.shared.textfiles import is_file, is_folder, is_there
    from lm_audit.shared.textfiles.outputs import check_output_folder

    if is_folder(file):
        raise UsageError(f"{file} is a folder; name a file in it")
    if is_there(file) and not is_file(file):
        raise UsageError(f"{file} is a pipe or a device; name a file")
    check_output_folder(file.parent, "--html")
    return file
