"""What ``pytest evals -m needle`` runs: grids by size and options, known at collection without a tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lm_audit.audits.hub_rows import hub_set
from lm_audit.audits.needle.grid.folder import read_samples, sample_files
from lm_audit.audits.needle.haystack.sources import from_path
from lm_audit.audits.needle.options import PRECISION
from lm_audit.audits.needle.samples.config import NeedleConfig
from lm_audit.audits.needle.samples.presets import preset
from lm_audit.audits.needle.samples.sequences import depth_sequence
from lm_audit.errors import DataError, UsageError
from lm_audit.shared.textfiles import is_there, on_disk, read_toml


@dataclass(frozen=True)
class Plan:
    """A grid to evaluate: from a folder, or built as ``config`` says at ``lengths`` x ``depths`` x ``samples``.

    Of a folder's cell at most ``limit`` samples are asked, drawn by ``seed``.
    """

    name: str
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    samples: int
    config: NeedleConfig | None = None
    folder: str | None = None
    asked: bool = False
    """Whether the lengths are the user's own; those of a size are left out where the task has no room in them."""
    limit: int | None = None
    seed: int = 0

    @property
    def shares(self) -> bool:
        """Whether prompts of one length share a stretch of haystack, so that they are best answered together."""
        return self.config is not None and self.config.windows != "independent"

    @property
    def cells(self) -> list[tuple[int, float]]:
        """Lengths x depths."""
        return [(length, depth) for length in self.lengths for depth in self.depths]


def plans(
    option: Callable[[str], Any],
    size: str,
    seed: int,
    defaults: Path,
    asking: Asking | None = None,
    limit: int | None = None,
) -> list[Plan]:
    """The plans that options and size ask for; ``option`` reads an option, ``defaults`` is the file of sizes; ``limit``
    is the number of samples a cell in place of the size's.

    Raises ``UsageError`` for options that cannot be used, ``DataError`` for a folder or a file of sizes that is none.
    """
    folder = option("needle_folder")
    _refuse_without_adaptive(option)
    if folder is not None:
        _refuse_beside_folder(option)
        return [replace(folder_plan(folder), limit=limit, seed=seed)]
    sizes = read_sizes(defaults, size)
    if limit is not None:
        sizes = {**sizes, "samples": limit}
    names = option("needle_preset") or sizes["presets"]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"--needle-preset {twice[0]} is given twice; its cases would have one id")
    haystack = option("needle_haystack")
    if haystack is not None and not any(preset(name)["type_haystack"] == "essay" for name in names):
        raise UsageError(
            f"--needle-haystack {haystack:.200} does nothing: {', '.join(names)} hide needles in noise or among needles"
        )
    return [_built_plan(name, option, sizes, seed, asking or Asking()) for name in names]


@dataclass(frozen=True)
class Asking:
    """How the model is asked: the template's name or text, the arguments of a chat template, and whether it thinks."""

    template: str = "auto"
    chat_args: Mapping[str, Any] = field(default_factory=dict)
    thinking: bool = True


_SIZE_KEYS = {
    "presets": list,
    "lengths": list,
    "depths": int,
    "samples": int,
    "tokens_to_generate": int,
    "boundary": str,
    "control_samples": int,
}


def read_sizes(path: Path, size: str) -> Mapping[str, Any]:
    """One table of the file of sizes; ``DataError`` for a file or a table that is none."""
    table = read_toml(path).get(size)
    if not isinstance(table, dict):
        raise DataError(f"holds no table [{size}]", file=path)
    for key, kind in _SIZE_KEYS.items():
        value = table.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise DataError(f"is {value!r}; expected {kind.__name__}", file=path, field=f"{size}.{key}")
    _check_numbers(table["lengths"], f"{path}: {size}.lengths {table['lengths']}")
    return table


def _refuse_without_adaptive(option: Callable[[str], Any]) -> None:
    precision = option("needle_precision")
    if precision != PRECISION and not option("adaptive"):
        raise UsageError(f"--needle-precision {precision:g} does nothing without --adaptive; give both or neither")


def _refuse_beside_folder(option: Callable[[str], Any]) -> None:
    """Options that say how samples are built have no say in a folder of samples."""
    names = ["lengths", "depths", "samples", "tokens", "preset", "haystack", "template", "boundary"]
    given = [name for name in names if option(f"needle_{name}") is not None and option(f"needle_{name}") != []]
    # These two have a value also where they are not given.
    given += [
        name for name, usual in (("windows", "independent"), ("language", "en")) if option(f"needle_{name}") != usual
    ]
    if given:
        raise UsageError(f"--needle-{given[0]} builds samples, --needle-folder reads them; leave one of the two out")


def folder_plan(folder: str) -> Plan:
    """The plan of a folder that ``needle build`` wrote, by the first record of each file."""
    cells: dict[tuple[int, float], int] = {}
    for path in sample_files(folder):
        first = next(read_samples(path), None)
        if first is None:
            raise DataError("holds no sample", file=path, row=1)
        cells[first.length, first.target_position] = 1
    lengths, depths = ({cell[axis] for cell in cells} for axis in (0, 1))
    return Plan(Path(folder).resolve().name, tuple(sorted(map(int, lengths))), tuple(sorted(depths)), 0, folder=folder)


def cell_id(plan: Plan, length: int, depth: float) -> str:
    """The id of a cell's case: ``niah_single_2-L4096-D50``."""
    return f"{plan.name}-L{length}-D{round(depth, 2):g}"


def _built_plan(name: str, option: Callable[[str], Any], sizes: Mapping[str, Any], seed: int, asking: Asking) -> Plan:
    lengths = _lengths(option("needle_lengths")) or tuple(sizes["lengths"])
    depths = tuple(depth_sequence(_given(option("needle_depths"), sizes["depths"]), "inclusive"))
    samples = _given(option("needle_samples"), sizes["samples"])
    values = preset(name)
    haystack = option("needle_haystack")
    if haystack and not is_there(on_disk(haystack).path) and hub_set(haystack) is None:
        raise UsageError(f"--needle-haystack {haystack}: does not exist; expected a text file, a folder or a hub id")
    if haystack:
        try:
            from_path(Path(haystack))
        except DataError as error:
            raise UsageError(f"--needle-haystack: {error}") from error
    config = NeedleConfig.from_mapping(
        {
            **values,
            "target_length": max(lengths),
            "length_interval": 1,
            "start_length": min(lengths),
            "num_positions": len(depths),
            "position_strategy": "inclusive",
            "num_samples": samples,
            "tokens_to_generate": _given(option("needle_tokens"), sizes["tokens_to_generate"]),
            "haystack": haystack if values["type_haystack"] == "essay" else None,
            "language": option("needle_language"),
            "template": asking.template,
            "chat_args": dict(asking.chat_args),
            "thinking": asking.thinking,
            "boundary": option("needle_boundary") or sizes["boundary"],
            "windows": option("needle_windows"),
            "random_seed": seed,
        }
    )
    return Plan(name, lengths, depths, samples, config, asked=option("needle_lengths") is not None)


def _given(value: object, default: object) -> Any:
    return default if value is None else value


def _lengths(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise UsageError(f"--needle-lengths {text!r}: expected whole numbers of at least 1, as 4096,8192")
    lengths = [int(part) for part in parts]
    _check_numbers(lengths, f"--needle-lengths {text!r}")
    return tuple(sorted(lengths))


def _check_numbers(lengths: Sequence[Any], what: str) -> None:
    if not lengths or not all(type(length) is int and length >= 1 for length in lengths):
        raise UsageError(f"{what}: expected whole numbers of at least 1")
    twice = sorted({length for length in lengths if lengths.count(length) > 1})
    if twice:
        raise UsageError(f"{what}: {twice[0]} is there twice; its cells would be asked once and counted twice")


def without_needles(plan: Plan, samples: int) -> Plan:
    """The plan of the negative control: no needle planted; the shortest length with room for the task is asked."""
    assert plan.config is not None
    config = replace(plan.config, planted=False, windows="independent")
    return replace(plan, name=f"{plan.name}-no-needle", depths=plan.depths[:1], samples=samples, config=config)
