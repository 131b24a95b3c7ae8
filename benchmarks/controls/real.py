"""Every control on its real model, at many seeds and under arithmetic as of other processors: how often each passes.

    python benchmarks/controls/real.py [--audit bias leakage ...] [--seeds 20] [--settings plain ...] [--jobs 1]
        [--piece SEEDS] [--record FILE]

Each setting runs in processes of its own, since the libraries read these settings when they load; ``--piece`` gives
each process so many seeds, so that many jobs have something to do. Prints one line for each failure and a table of
passes, and appends each outcome to the record as it comes. Bias controls run on ``tiny`` (``--bias-model`` takes
another).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "harness"))

SETTINGS = {
    "plain": {"OMP_NUM_THREADS": "1"},
    "2 threads": {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
    "no vectors": {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default"},
    "SSE4.1": {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "AVX2": {
        "OMP_NUM_THREADS": "1",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "MKL compatible": {"OMP_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE"},
}
Controls = Iterator[tuple[str, Any]]

BLIND_MEMBERS, BLIND_TWINS = 15, 200
"""As many as the four-stage demo has."""


def bias(seed: int, model: str) -> Controls:
    from lm_audit.audits.bias import public_control
    from lm_audit.audits.bias.grid.controls.cases import control_evidence
    from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
    from lm_audit.models import load_model

    fixtures, loaded = ROOT / "fixtures" / "bias", load_model(model, device="cpu")
    templates = tomllib.loads((fixtures / "nonce_en.toml").read_text(encoding="utf-8"))["templates"]
    pairs = load_preference_set(fixtures / "preference_en.toml").pairs
    made = tomllib.loads((fixtures / "control_public.toml").read_text(encoding="utf-8"))
    yield "planted-preference", control_evidence(loaded, templates, pairs, size=2.0, seed=seed)
    yield "meaningless-names", control_evidence(loaded, templates, pairs, size=0.0, seed=seed)
    yield "made-rows", public_control(loaded, made, seed=seed)


def leakage(seed: int, _: str) -> Controls:
    from lm_audit.audits.leakage import negative_control, plant, positive_control
    from lm_audit.models.toy.tiny_model import tiny_model

    planted = plant(tiny_model(), seed=seed)
    yield "seen-in-training", positive_control(planted)
    yield "never-seen", negative_control(planted)


def privacy(seed: int, _: str) -> Controls:
    from lm_audit.audits.privacy.audit import blind_evidence
    from lm_audit.audits.privacy.controls.known_scores import known_scores
    from lm_audit.audits.privacy.controls.known_training import known_training
    from lm_audit.audits.privacy.controls.trained_controls import never_trained, often_repeated
    from lm_audit.audits.privacy.data.canaries import generate_canaries
    from lm_audit.audits.privacy.data.manifest import Manifest
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions, score_stage
    from lm_audit.models.toy.tiny_model import tiny_model

    yield "known-scores", known_scores(seed)
    yield "known-training", known_training(seed)
    yield "often-repeated", often_repeated(seed)
    yield "never-trained", never_trained(seed)
    drawn = generate_canaries(BLIND_MEMBERS + BLIND_TWINS, seed=seed)
    twins = [replace(one, role="control", repetitions=0) for one in drawn[BLIND_MEMBERS:]]
    canaries = [*drawn[:BLIND_MEMBERS], *twins]
    manifest, options = Manifest(tuple(canaries), seed=seed), ScoringOptions(source_extraction=False, stress=False)
    yield "blind-baseline", blind_evidence(score_stage(tiny_model(0), "base", manifest, options=options), manifest)


def needle(seed: int, _: str) -> Controls:
    from lm_audit.audits.needle.controls import stubs as controls

    yield "reads-the-needle", controls.reader_control(seed)
    yield "reads-the-middle", controls.middle_control(seed)
    yield "planted-model", controls.planted_control(seed)
    yield "planted-model-middle", controls.planted_middle_control(seed)


def faithfulness(seed: int, _: str) -> Controls:
    from lm_audit.audits.faithfulness.controls.copier import copier, copy_samples
    from lm_audit.audits.faithfulness.controls.deletion_control import random_attribution_evidence
    from lm_audit.audits.faithfulness.controls.known_sources import (
        SAMPLES,
        planted_span_evidence,
        randomised_weights_evidence,
    )

    model, samples = copier(seed), copy_samples(SAMPLES, seed)
    yield "planted-span", planted_span_evidence(model, samples, seed=seed)
    yield "randomised-weights", randomised_weights_evidence(model, samples, seed=seed, cascade=False)
    yield "random-attribution", random_attribution_evidence(model, samples, seed=seed)


AUDITS: dict[str, Callable[[int, str], Controls]] = {
    "privacy": privacy,
    "leakage": leakage,
    "bias": bias,
    "needle": needle,
    "faithfulness": faithfulness,
}


def one(audit: str, seeds: range, model: str) -> None:
    """Every control of the audit at the seeds, a line of JSON each."""
    for seed in seeds:
        for name, evidence in AUDITS[audit](seed, model):
            control = evidence.control
            told = {"control": name, "seed": seed, "passed": control.passed, "observed": control.observed}
            print(json.dumps(told), flush=True)


def run(task: tuple[str, str, str, str]) -> tuple[str, str, list[dict[str, Any]], str]:
    """Some seeds of one audit under one setting, in a process of its own: its lines, and how it broke off if it did."""
    audit, setting, seeds, model = task
    command = [sys.executable, __file__, "--one", audit, "--seeds", seeds, "--bias-model", model]
    done = subprocess.run(command, env=os.environ | SETTINGS[setting], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return audit, setting, lines, done.stderr.strip()[-500:] if done.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audit", choices=tuple(AUDITS), nargs="*", default=list(AUDITS))
    parser.add_argument("--settings", choices=tuple(SETTINGS), nargs="*", default=list(SETTINGS))
    parser.add_argument("--seeds", default="20", help="a number of seeds, or FIRST:END")
    parser.add_argument("--bias-model", default="tiny")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--piece", type=int, default=0, help="seeds of one process; 0 for all of them")
    parser.add_argument("--record", type=Path, default=None, help="a file of JSON lines that outcomes are appended to")
    parser.add_argument("--one", choices=tuple(AUDITS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    first, _, end = options.seeds.rpartition(":")
    seeds = range(int(first or 0), int(end))
    if options.one:
        one(options.one, seeds, options.bias_model)
        return
    step = options.piece or len(seeds)
    pieces = [f"{start}:{min(start + step, seeds.stop)}" for start in range(seeds.start, seeds.stop, step)]
    tasks = [
        (audit, setting, piece, options.bias_model)
        for audit in options.audit
        for setting in options.settings
        for piece in pieces
    ]
    passed: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in as_completed([pool.submit(run, task) for task in tasks]):
            audit, setting, lines, broken = done.result()
            if broken:
                print(f"{audit}, {setting}: {broken}", flush=True)
            for line in lines:
                if not line["passed"]:
                    print(f"{audit}, {setting}, seed {line['seed']}, {line['control']}: {line['observed']}", flush=True)
                passed[audit, line["control"]][setting] += line["passed"]
            if options.record is not None:
                with options.record.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps({"audit": audit, "setting": setting} | line) + "\n" for line in lines)
    print(f"| audit | control | {' | '.join(options.settings)} |\n| --- | --- |{' --- |' * len(options.settings)}")
    for (audit, name), found in sorted(passed.items()):
        counts = (
            f"{found[setting]} of {len(seeds)}" if setting in found else "broke off" for setting in options.settings
        )
        print(f"| {audit} | {name} | {' | '.join(counts)} |")


if __name__ == "__main__":
    main()
