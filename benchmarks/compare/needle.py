"""Needle prompts beside the reference generator: CPU seconds and peak memory, each job in a process of its own.

    python benchmarks/compare/needle.py [--jobs NAME,...] [--json FILE]

``reference`` is RULER's algorithm written anew from its description: make the sorted list of all 6.2 million
adjective-noun pairs, search for a haystack size by tokenising whole prompts, then draw each sample, tokenise it, and
drop 500 words while it is too long. It is not RULER's code, and splits sentences with our splitter, which is faster
than the one that RULER uses. ``RULER_CPU`` quotes what the program itself took on two cores (131,072 tokens, 2 samples:
56.0 CPU seconds, 1335 MB).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

RULER_CPU = {"import alone": 29.2, "32768 tokens, 2 samples": 40.0, "131072 tokens, 2 samples": 56.0}
LENGTH = 131_072
PAIRS_OF = 2490
"""Adjectives, and nouns, whose pairs are as many as RULER's."""
JOBS = ("ours-10", "ours-10-whole", "ours-50", "reference-10", "reference-50", "ours-4k", "ours-memory")


def main() -> int:
    """Run the jobs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default=",".join(JOBS), help=f"of {', '.join(JOBS)}")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        return run_job(args.job)
    found = {name: measured(name) for name in args.jobs.split(",")}
    for name, numbers in found.items():
        print(f"{name:15}", "  ".join(f"{key} {value}" for key, value in numbers.items()))
    for samples in (10, 50):
        ours, reference = found.get(f"ours-{samples}"), found.get(f"reference-{samples}")
        if ours and reference:
            whole, pairs = reference["cpu_s"], reference["pairs_cpu_s"]
            print(
                f"{samples} samples at {LENGTH}: {ours['cpu_s'] / whole:.3f} of the reference algorithm's CPU time, "
                f"{ours['cpu_s'] / (whole - pairs):.3f} without its list of pairs"
            )
    if args.json:
        args.json.write_text(json.dumps({"jobs": found, "quoted_ruler_cpu_s": RULER_CPU}, indent=1) + "\n")
    return 0


def measured(job: str) -> dict[str, float]:
    """CPU seconds and peak memory of a job from a cold start, its children included, and what it prints."""
    with tempfile.TemporaryFile("w+") as out:
        environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
        before = time.monotonic()
        process = subprocess.Popen([sys.executable, __file__, "--job", job], stdout=out, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{job} failed")
        out.seek(0)
        own = json.loads(out.read().splitlines()[-1])
    return {
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "wall_s": round(time.monotonic() - before, 2),
        "peak_mb": round(usage.ru_maxrss / 1024),
        **own,
    }


def run_job(job: str) -> int:
    """One job in this process; its last line is JSON."""
    kind, _, rest = job.partition("-")
    with tempfile.TemporaryDirectory() as folder:
        if kind == "reference":
            numbers = reference(int(rest))
        elif rest == "4k":
            numbers = short_samples()
        elif rest == "memory":
            numbers = many_samples(Path(folder))
        else:
            samples, _, verify = rest.partition("-")
            numbers = ours(int(samples), verify or "auto", Path(folder))
    print(json.dumps(numbers))
    return 0


def ours(samples: int, verify: str, folder: Path) -> dict[str, float]:
    """A grid of one length: 1 depth for 10 samples, 5 depths for 50."""
    from lm_audit.audits.needle import write_grid

    depths = 1 if samples == 10 else 5
    config = {
        "target_length": LENGTH,
        "length_interval": LENGTH,
        "num_positions": depths,
        "position_strategy": "inclusive",
        "num_samples": samples // depths,
        "verify": verify,
    }
    summary = write_grid(config, folder / "grid").summary
    return {"samples": summary["samples"], "most_below": summary["most_tokens_below_target"]}


def reference(samples: int) -> dict[str, float]:
    """RULER's way to a sample, from its description, on the same haystack and tokenizer."""
    import random

    from lm_audit.audits.needle.haystack.sentences import split_sentences
    from lm_audit.audits.needle.haystack.sources import embedded_essay
    from lm_audit.audits.needle.samples.wording import needle_sentence, task_wording
    from lm_audit.models import load_tokenizer

    before = time.process_time()
    pairs = sorted({f"adjective{a}-noun{n}" for a in range(PAIRS_OF) for n in range(PAIRS_OF)})
    pairs_cpu = time.process_time() - before
    tokenizer, rng = load_tokenizer("smollm2"), random.Random(42)
    essay = embedded_essay().text.split()
    task = task_wording("numbers", ["red-fox"], 1)

    def prompt(words: int) -> str:
        text = " ".join((essay * (words // len(essay) + 1))[:words])
        sentences = split_sentences(text)
        at = int(len(sentences) * rng.randint(0, 100) / 100)
        needle = needle_sentence("numbers", rng.choice(pairs), str(rng.randint(1_000_000, 9_999_999)))
        return task.opening + " ".join([*sentences[:at], needle, *sentences[at:]]) + task.question + task.answer_prefix

    def length(words: int) -> int:
        return len(tokenizer(prompt(words), verbose=False).input_ids) + 128

    step = 500
    upper = step
    while length(upper) < LENGTH:
        upper *= 2
    lower = upper // 2
    while upper - lower > step:
        middle = (lower + upper) // 2
        lower, upper = (middle, upper) if length(middle) <= LENGTH else (lower, middle)
    shortest = LENGTH
    for _ in range(samples):
        words = lower
        while (found := length(words)) > LENGTH:
            words -= step
        shortest = min(shortest, found)
    return {"samples": samples, "most_below": LENGTH - shortest, "pairs_cpu_s": round(pairs_cpu, 2)}


def short_samples() -> dict[str, float]:
    """Seconds of CPU for one sample of 4,096 tokens, once the haystack is known."""
    from lm_audit.audits.needle import Haystack, NeedleTask, build_sample
    from lm_audit.models import load_tokenizer

    haystack = Haystack("essay", load_tokenizer("smollm2"))
    _ = haystack.token_starts
    build_sample(haystack, length=4096, depth=50, needle=NeedleTask(), seed=0)
    begun, count = time.process_time(), 50
    for index in range(count):
        build_sample(haystack, length=4096, depth=50, needle=NeedleTask(), seed=1, index=index)
    return {"samples": count, "cpu_s_a_sample": round((time.process_time() - begun) / count, 4)}


def many_samples(folder: Path) -> dict[str, float]:
    """12,800 samples in 1,280 cells; memory after the first tenth of them and at the end."""
    from lm_audit.audits.needle import write_grid

    sizes: list[int] = []
    config = {
        "start_length": 400,
        "target_length": 400 + 127 * 10,
        "length_interval": 10,
        "num_positions": 10,
        "num_samples": 10,
    }
    written = write_grid(config, folder / "grid", on_cell=lambda cell, done, total: sizes.append(resident()))
    return {
        "samples": written.summary["samples"],
        "mb_after_a_tenth": sizes[len(sizes) // 10],
        "mb_at_the_end": sizes[-1],
        "most_below": written.summary["most_tokens_below_target"],
    }


def resident() -> int:
    """This process's memory in MB now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() >> 20


if __name__ == "__main__":
    sys.exit(main())
