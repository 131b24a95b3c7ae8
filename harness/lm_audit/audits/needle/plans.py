"""What ``pytest evals -m needle`` runs: grids by size and options, known at collection without a tokenizer."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lm_audit.audits.needle.config import NeedleConfig
from lm_audit.audits.needle.gridfiles import sample_files
from lm_audit.audits.needle.presets import preset
from lm_audit.audits.needle.sequences import depth_sequence
from lm_audit.errors import DataError, UsageError


@dataclass(frozen=True)
class Plan:
    """A grid to evaluate: from a folder, or built as ``config`` says at ``lengths`` x ``depths`` x ``samples``."""

    name: str
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    samples: int
    config: NeedleConfig | None = None
    folder: str | None = None

    @property
    def shares(self) -> bool:
        """Whether prompts of one length share a stretch of haystack, so that they are best answered together."""
        return self.config is not None and self.config.windows != "independent"

    @property
    def cells(self) -> list[tuple[int, float]]:
        """Lengths x depths."""
        return [(length, depth) for length in self.lengths for depth in self.depths]


def plans(option: Callable[[str], Any], size: str, seed: int, defaults: Path) -> list[Plan]:
    """The plans that options and size ask for; ``option`` reads an option, ``defaults`` is the file of sizes."""
    folder = option("needle_folder")
    if folder:
        return [folder_plan(folder)]
    sizes = tomllib.loads(defaults.read_text(encoding="utf-8"))[size]
    names = option("needle_preset") or sizes["presets"]
    return [_built_plan(name, option, sizes, seed) for name in names]


def folder_plan(folder: str) -> Plan:
    """The plan of a folder that ``needle build`` wrote, by the first record of each file."""
    cells: dict[tuple[int, float], int] = {}
    for path in sample_files(folder):
        with path.open(encoding="utf-8") as file:
            line = file.readline()
        try:
            record = json.loads(line)
            cells[int(record["length"]), float(record["target_position"])] = 1
        except (ValueError, KeyError, TypeError):
            raise DataError("holds no sample", file=path, row=1) from None
    lengths, depths = ({cell[axis] for cell in cells} for axis in (0, 1))
    return Plan(Path(folder).resolve().name, tuple(sorted(map(int, lengths))), tuple(sorted(depths)), 0, folder=folder)


def cell_id(plan: Plan, length: int, depth: float) -> str:
    """The id of a cell's case: ``niah_single_2-L4096-D50``."""
    return f"{plan.name}-L{length}-D{round(depth, 2):g}"


def _built_plan(name: str, option: Callable[[str], Any], sizes: Mapping[str, Any], seed: int) -> Plan:
    lengths = _lengths(option("needle_lengths")) or tuple(sizes["lengths"])
    depths = tuple(depth_sequence(option("needle_depths") or sizes["depths"], "inclusive"))
    samples = option("needle_samples") or sizes["samples"]
    values = preset(name)
    haystack = option("needle_haystack")
    if haystack and not Path(haystack).exists():
        raise UsageError(f"--needle-haystack {haystack}: does not exist; expected a text file or folder")
    config = NeedleConfig.from_mapping(
        {
            **values,
            "target_length": max(lengths),
            "length_interval": 1,
            "start_length": min(lengths),
            "num_positions": len(depths),
            "position_strategy": "inclusive",
            "num_samples": samples,
            "tokens_to_generate": option("needle_tokens") or sizes["tokens_to_generate"],
            "haystack": haystack if values["type_haystack"] == "essay" else None,
            "language": option("needle_language"),
            "template": option("needle_template"),
            "boundary": option("needle_boundary") or sizes["boundary"],
            "windows": option("needle_windows"),
            "random_seed": seed,
        }
    )
    return Plan(name, lengths, depths, samples, config)


def _lengths(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    try:
        lengths = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise UsageError(f"--needle-lengths {text!r}: expected whole numbers, as 4096,8192") from None
    if lengths[0] < 1:
        raise UsageError(f"--needle-lengths {text!r}: expected 1 token or more")
    return lengths


def without_needles(plan: Plan, samples: int) -> Plan:
    """The plan of the negative control: the shortest length, no needle planted."""
    assert plan.config is not None
    config = replace(plan.config, planted=False, windows="independent")
    return Plan(f"{plan.name}-no-needle", plan.lengths[:1], plan.depths[:1], samples, config)
