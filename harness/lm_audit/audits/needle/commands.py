"""``lm-audit needle``: build a grid of samples, and score the outputs of another system."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from lm_audit.shared.given_path import given_path
from lm_audit.shared.number_checks import filled, real_number, seed_number, whole_number
from lm_audit.shared.textfiles.outputs import check_output_file, check_output_folder

if TYPE_CHECKING:
    from lm_audit.audits.needle.grid.folder import CellStats
    from lm_audit.evidence import Evidence

_TYPES = ("words", "numbers", "uuids")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command ``needle`` with its steps."""
    parser = subparsers.add_parser("needle", help="build needle-in-a-haystack prompts of exact length; score outputs")
    steps = parser.add_subparsers(title="steps", metavar="STEP", required=True)
    _register_build(steps)
    _register_score(steps)


def _register_build(steps: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    build = steps.add_parser(
        "build",
        help="write a grid of samples",
        description="Write length_*/position_*.jsonl under --save-dir. A run that was stopped goes on where it was.",
        argument_default=argparse.SUPPRESS,
    )
    add = build.add_argument
    add("--save-dir", type=given_path, required=True, metavar="FOLDER", help="output folder")
    add("--save-name", help="sub-folder of it")
    add("--target-length", type=whole_number(1, 10**9), required=True, help="largest length in tokens, answer included")
    add("--length-interval", type=whole_number(1, 10**9), required=True, help="step between lengths")
    add("--start-length", type=whole_number(1, 10**9), help="first length (default: the interval)")
    add("--num-positions", type=whole_number(1, 10_000), required=True, help="depths a length")
    add("--position-strategy", help="uniform (default), inclusive, open or random")
    add("--num-samples", type=whole_number(1, 10**9), required=True, help="samples a cell")
    add("--preset", help="one of RULER's tasks, niah_single_1 to niah_multiquery")
    add("--type-haystack", help="essay (default), noise or needle")
    add(
        "--haystack",
        type=filled,
        metavar="PATH",
        help="a text file, or a folder of .txt files, in place of the embedded essay",
    )
    add("--type-needle-k", help=f"type of keys: {', '.join(_TYPES)}")
    add("--type-needle-v", help="type of values, likewise")
    add("--num-needle-k", type=whole_number(1, 10**9), help="keys")
    add("--num-needle-v", type=whole_number(1, 10**9), help="values a key")
    add("--num-needle-q", type=whole_number(1, 10**9), help="keys asked for")
    add("--tokens-to-generate", type=whole_number(0, 10**6), help="tokens reserved for the answer (default 128)")
    add("--tokenizer", dest="tokenizer_path", help="model whose tokenizer counts: hub id, folder, smollm2 (default)")
    add("--tokenizer-type", help="hf, the only one there is")
    add("--template", help="auto (default), chat, base, or a text that holds {task_template}")
    add("--chat-args", action="append", metavar="KEY=VALUE", help="argument of the chat template, its value as JSON")
    add("--no-thinking", dest="thinking", action="store_false", help="close a thought that the chat template opens")
    add("--random-seed", type=seed_number(), help="seed of everything (default 0)")
    add(
        "--remove-newline-tab",
        action="store_true",
        help="make line breaks and tabs of the task spaces, before counting",
    )
    add("--subset", help="validation (default) or test: other samples of the same kind")
    add("--language", help="wording: en (default) or zh")
    add("--boundary", help="where needles may stand: sentence (default) or word")
    add("--windows", help="haystack windows: independent (default), shared (by all depths and lengths) or start")
    add("--other-depths", help="further needles: spread (default) behind the first, or random")
    add("--without-needle", dest="planted", action="store_false", help="leave the needle out: a negative control")
    add("--verify", help="auto (default), or whole: tokenise every finished prompt whole")
    add("--workers", type=whole_number(1, 1024), help="processes (default: one a core)")
    build.set_defaults(run=_build)


def _register_score(steps: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    score = steps.add_parser(
        "score",
        help="score outputs that another system generated",
        description="OUTPUTS is a JSONL file (id and pred a line), or a folder laid out as FOLDER (index and pred).",
    )
    score.add_argument("folder", type=given_path, metavar="FOLDER", help="what needle build wrote")
    score.add_argument("outputs", type=given_path, metavar="OUTPUTS", help="a JSONL file, or a folder")
    score.add_argument("--scorer", default="all", choices=("all", "any", "boundary"))
    score.add_argument(
        "--threshold", type=real_number(above=0, below=1), default=0.85, help="accuracy that the cliff goes by"
    )
    score.add_argument(
        "--json", type=given_path, metavar="FILE", help="also write metrics, rows and figures to this file"
    )
    score.set_defaults(run=_score)


def _build(args: argparse.Namespace) -> int:
    import os

    from lm_audit.audits.needle.grid.writing import write_grid
    from lm_audit.audits.needle.samples.config import NeedleConfig
    from lm_audit.models.text.chat import parse_chat_arguments

    check_output_folder(args.save_dir, "--save-dir")
    given = {name: value for name, value in vars(args).items() if name not in ("run", "save_dir", "workers")}
    if "chat_args" in given:
        given["chat_args"] = parse_chat_arguments(given["chat_args"])
    config = NeedleConfig.from_mapping(given)
    workers = getattr(args, "workers", os.cpu_count() or 1)
    written = write_grid(config, args.save_dir, workers=workers, on_cell=_say_cell)
    summary = written.summary
    print(
        f"{summary['samples']} samples in {len(summary['cells'])} cells ({written.reused} were there) under "
        f"{written.folder}; tokens below the length: at most {summary['most_tokens_below_target']}, worst depth "
        f"{summary['worst_depth_error']:.2f} percentage points off; content {summary['content_sha256'][:16]}"
    )
    return 0


def _say_cell(cell: CellStats, done: int, total: int) -> None:
    print(
        f"[{done}/{total}] {cell.file}: {cell.samples} samples, {cell.shortest} to {cell.longest} tokens, "
        f"depth within {cell.depth_error:.2f} percent",
        flush=True,
    )


def _score(args: argparse.Namespace) -> int:
    from lm_audit.audits.needle.answers.evaluation import grid_evidence
    from lm_audit.audits.needle.answers.outputs import score_outputs

    if args.json is not None:
        check_output_file(args.json, "--json")
    scored = score_outputs(args.folder, args.outputs)
    evidence = grid_evidence(scored, scorer=args.scorer, threshold=args.threshold)
    for name, estimate in evidence.metrics.items():
        value = f"{estimate.value:.4f}" if estimate.value is not None else f"not estimable ({estimate.note})"
        interval = "" if estimate.low is None else f"  [{estimate.low:.4f}, {estimate.high:.4f}]"
        print(f"{name:28} {value}{interval}  n = {estimate.n}")
    for note in evidence.notes:
        print(f"note: {note}")
    if args.json is not None:
        args.json.write_text(json.dumps(_plain(evidence), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 0


def _plain(evidence: Evidence) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "audit": evidence.audit,
        "metrics": {name: estimate.to_json() for name, estimate in evidence.metrics.items()},
        "parameters": evidence.parameters,
        "notes": evidence.notes,
        "rows": evidence.rows,
        "figures": [asdict(figure) for figure in evidence.figures],
    }
