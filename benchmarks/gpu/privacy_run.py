"""A four-stage run on a real model: 50 canaries in 10,000 documents, then the audit and its tables.

Reads the chain's own configuration, so that the result can be had again with the command it prints::

    python benchmarks/gpu/privacy_run.py --documents TEXTS --output FOLDER [--model smollm2] [--device cuda]

``TEXTS`` is a folder of ``.txt`` files, a text file or JSON lines; every text is cut into chunks of 50 to 512 words.
Where they give fewer than 10,000 documents, seeded template paragraphs fill up the rest, and the printed record says
how many. The trainer is TRL's where it is installed, else the project's own loop (``--trainer`` decides).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "harness"))

from lm_audit.audits.privacy.data.documents import chunks  # noqa: E402
from lm_audit.audits.privacy.data.jsonl import write_lines  # noqa: E402
from lm_audit.audits.privacy.data.seeded_stream import Stream  # noqa: E402
from lm_audit.audits.privacy.stages.config import LoraSettings, StagesConfig, TrainSettings  # noqa: E402
from lm_audit.models.toy.tiny_text import seeded_text  # noqa: E402

DOCUMENTS = 10_000


def main() -> int:
    """Prepare documents, train, audit, print the tables and the time of each part."""
    args = parse()
    args.output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    source, found, made = gather(args.documents, args.output / "documents.jsonl", args.num_documents, args.max_words)
    print(
        f"documents: {found} from texts, {made} seeded paragraphs ({time.perf_counter() - started:.0f} s)", flush=True
    )
    config = configuration(args, source)
    times = run(config, args)
    report(config, args, times, {"documents_from_texts": found, "documents_seeded": made})
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=Path, nargs="+", required=True, help="folders, .txt or .jsonl files")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--trainer", choices=("own", "trl"), default="trl" if find_spec("trl") else "own")
    parser.add_argument("--lora", action="store_true", help="adapters instead of all weights")
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--controls", type=int, default=1000)
    parser.add_argument("--num-documents", type=int, default=DOCUMENTS)
    parser.add_argument("--max-words", type=int, default=90, help="longest chunk; the spec allows up to 512")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=None, help="default 1e-4 for all weights, 2e-4 for adapters")
    parser.add_argument("--dpo-lr", type=float, default=None, help="default 1e-5 for all weights, 5e-5 for adapters")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--copy-to", type=Path, help="copy tables, evidence and log there (small files only)")
    return parser.parse_args()


def gather(paths: list[Path], target: Path, wanted: int, most: int) -> tuple[Path, int, int]:
    """Write ``wanted`` distinct documents as JSON lines: chunks of the texts, then seeded paragraphs of 50 words or
    more.
    """
    files = [file for path in paths for file in (sorted(path.rglob("*.txt")) if path.is_dir() else [path])]
    documents = dict.fromkeys(doc for file in files for doc in text_documents(file, most))
    found = list(documents)[:wanted]
    made = seeded_paragraphs(wanted - len(found))
    write_lines(target, ({"text": text} for text in [*found, *made]))
    return target, len(found), len(made)


def text_documents(file: Path, most: int) -> list[str]:
    text = file.read_text(encoding="utf-8", errors="replace")
    texts = [json.loads(line)["text"] for line in text.splitlines()] if file.suffix == ".jsonl" else [text]
    return [chunk for one in texts for chunk in chunks(one, most=most)]


def seeded_paragraphs(n: int) -> list[str]:
    """Paragraphs of eight template sentences, at least 50 words each."""
    sentences = seeded_text(8 * n, 7) if n else []
    order = Stream(7, "paragraphs").shuffled(sentences)
    return [" ".join(order[8 * i : 8 * i + 8]) for i in range(n)]


def configuration(args: argparse.Namespace, documents: Path) -> StagesConfig:
    """The config of the chain: five repetition tiers, all weights or adapters."""
    lr = args.lr or (2e-4 if args.lora else 1e-4)
    dpo_lr = args.dpo_lr or (5e-5 if args.lora else 1e-5)
    return StagesConfig(
        model=args.model,
        seed=args.seed,
        members=args.members,
        controls=args.controls,
        repetitions=(1, 2, 4, 8, 16),
        documents=args.num_documents,
        documents_path=documents,
        decoys=0,
        pairs=args.pairs,
        sft=TrainSettings(epochs=args.epochs, lr=lr, warmup_steps=20, max_length=256),
        dpo=TrainSettings(epochs=1, lr=dpo_lr, batch_size=16, warmup_steps=0, max_length=256),
        trainer=args.trainer,
        lora=LoraSettings() if args.lora else None,
        device=args.device,
        output=args.output,
    )


def run(config: StagesConfig, args: argparse.Namespace) -> dict[str, float]:
    """Train and audit; seconds of each part."""
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.files.evidence_file import save_evidence
    from lm_audit.audits.privacy.files.outputs import write_outputs
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions
    from lm_audit.audits.privacy.stages.four_stages import run_stages

    times: dict[str, float] = {}
    clock = [time.perf_counter()]

    def mark(name: str) -> None:
        times[name] = round(time.perf_counter() - clock[0], 1)
        clock[0] = time.perf_counter()
        print(f"{name}: {times[name]} s", flush=True)

    stages = run_stages(config, on_message=lambda text: print(f"  {text}", flush=True))
    mark("training")
    options = ScoringOptions(samples=8, exact_positions=2, seed=config.seed)
    evidence = audit_stages(
        stages,
        config.folder() / "manifest.jsonl",
        device=config.device,
        options=options,
        on_message=lambda text: print(f"  {text}", flush=True),
    )
    mark("audit")
    save_evidence(evidence, config.folder() / "evidence.json")
    write_outputs(evidence, config.folder())
    mark("tables")
    return times


def report(config: StagesConfig, args: argparse.Namespace, times: dict[str, float], counts: dict[str, int]) -> None:
    """Print the result and copy the small files."""
    folder = config.folder()
    summary = json.loads((folder / "attribution_summary.json").read_text(encoding="utf-8"))
    print("\n".join(summary["key_findings"]))
    print((folder / "privacy_audit_summary.csv").read_text(encoding="utf-8"))
    for stage in ("sft", "dpo_no_canary", "dpo_with_canary"):
        record = json.loads((folder / "stages" / stage / "stage.json").read_text(encoding="utf-8"))
        print(stage, {key: record[key] for key in ("rows", "steps", "first_loss", "last_loss", "seconds")})
    record = {"config": config.to_json(), "times": times, **counts, "argv": sys.argv[1:]}
    (folder / "run.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if args.copy_to:
        args.copy_to.mkdir(parents=True, exist_ok=True)
        names = ("run.json", "evidence.json", "privacy_audit_summary.csv", "attribution_table.csv")
        for name in (*names, "attribution_summary.json", "run_metadata.jsonl"):
            shutil.copy(folder / name, args.copy_to / name)


if __name__ == "__main__":
    raise SystemExit(main())
