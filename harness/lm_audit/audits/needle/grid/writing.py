"""Writing a grid of samples: cell by cell, in as many processes as asked for, resumable at any moment."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from lm_audit.audits.needle.grid.folder import (
    METADATA,
    SUMMARY,
    CellStats,
    cell_file,
    cell_stats,
    claim_folder,
    finished_cell,
    summary_of,
    write_atomically,
    write_json,
)
from lm_audit.audits.needle.haystack.named import haystack_of
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.samples.building import build_sample
from lm_audit.audits.needle.samples.config import NeedleConfig
from lm_audit.audits.needle.samples.prompt_tokens import is_additive
from lm_audit.audits.needle.samples.sample import GENERATOR_VERSION, Sample, json_line
from lm_audit.audits.needle.samples.task import SEAMS_FROM
from lm_audit.errors import DataError, HarnessError
from lm_audit.models.text.tokenizer import Tokenizer

OnCell = Callable[[CellStats, int, int], None]


@dataclass(frozen=True)
class WrittenGrid:
    """Where a grid lies, the content of its ``summary.json``, and how many cells were there before."""

    folder: Path
    summary: Mapping[str, Any]
    reused: int


def write_grid(
    config: NeedleConfig | Mapping[str, Any],
    folder: str | Path,
    *,
    tokenizer: Tokenizer | None = None,
    workers: int = 1,
    on_cell: OnCell | None = None,
) -> WrittenGrid:
    """Write every cell of the grid under ``folder`` (and ``save_name``), and keep those that an earlier run finished.

    Sample files depend on the configuration alone: not on ``workers``, nor on how often the run was stopped.
    ``tokenizer`` stands in for the one that the configuration names. Raises ``UsageError`` for a folder of another
    configuration, ``DataError`` for a length that the task does not fit in; both before anything is written.
    """
    begun = time.monotonic()
    config = config if isinstance(config, NeedleConfig) else NeedleConfig.from_mapping(config)
    work = _prepare(config, tokenizer)
    root = Path(folder) / config.save_name if config.save_name else Path(folder)
    config_hash = config.content_hash(
        work.haystack.sha256, tokenizer_hash(work.haystack.encoder.tokenizer), GENERATOR_VERSION
    )
    cells = [(length, depth) for length in config.lengths for depth in config.depths]
    claim_folder(root, config.to_json(), config_hash)
    done = {cell: stats for cell in cells if (stats := finished_cell(root, *cell, config.num_samples))}
    reused = len(done)
    missing = [cell for cell in cells if cell not in done]
    for stats in _write_cells(work, root, missing, workers):
        done[stats.length, stats.position] = stats
        if on_cell:
            on_cell(stats, len(done), len(cells))
    summary = summary_of(done.values(), config_hash)
    write_json(root / SUMMARY, summary)
    write_json(root / METADATA, _metadata(config, config_hash, work.haystack, summary, time.monotonic() - begun))
    return WrittenGrid(root, summary, reused)


@dataclass
class _Work:
    """What a cell is made from; one a process."""

    config: NeedleConfig
    haystack: Haystack

    def cell(self, root: Path, length: int, depth: float) -> CellStats:
        path, kept = root / cell_file(length, depth), list[Sample]()
        digest = write_atomically(path, self._lines(length, depth, kept))
        return cell_stats(length, depth, kept, digest)

    def _lines(self, length: int, depth: float, kept: list[Sample]) -> Iterator[str]:
        whole = self._seams_fail(length, depth)
        for index in range(self.config.num_samples):
            sample = self.sample(length, depth, index, whole=whole)
            yield json_line(sample)
            kept.append(_without_text(sample))

    def _seams_fail(self, length: int, depth: float) -> bool:
        """One full check a cell: whether reading the seams alone gives other ids than reading the whole prompt."""
        if length < SEAMS_FROM or self.config.verify == "whole" or not is_additive(self.haystack):
            return False
        by_seams, whole = (self.sample(length, depth, 0, whole=flag) for flag in (False, True))
        return by_seams.ids_sha256 != whole.ids_sha256

    def sample(self, length: int, depth: float, index: int, *, whole: bool) -> Sample:
        return build_sample(
            self.haystack,
            length=length,
            depth=depth,
            needle=self.config.task,
            seed=self.config.random_seed,
            index=index,
            options=self.config.options,
            **({"verify": "whole"} if whole else {}),
        )


def _without_text(sample: Sample) -> Sample:
    from dataclasses import replace

    return replace(sample, input="")


def grid_samples(config: NeedleConfig, tokenizer: Tokenizer | None = None) -> Iterator[Sample]:
    """The samples of a grid, cell by cell, without writing any file."""
    work = _prepare(config, tokenizer)
    for length in config.lengths:
        for depth in config.depths:
            for index in range(config.num_samples):
                yield work.sample(length, depth, index, whole=False)


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """Identifies what the tokenizer does."""
    from lm_audit.models.loading.identity.fingerprint import tokenizer_digest

    return tokenizer_digest(tokenizer)


def _prepare(config: NeedleConfig, tokenizer: Tokenizer | None) -> _Work:
    """Haystack and tokenizer, and one sample of the shortest length: what cannot be built fails before writing."""
    if tokenizer is None:
        from lm_audit.models import load_tokenizer

        tokenizer = load_tokenizer(config.tokenizer_path)
    haystack = haystack_of(config, tokenizer)
    if max(config.lengths) >= SEAMS_FROM:
        is_additive(haystack)
    work = _Work(config, haystack)
    work.sample(config.lengths[0], config.depths[0], 0, whole=False)
    return work


def _write_cells(work: _Work, root: Path, cells: list[tuple[int, float]], workers: int) -> Iterator[CellStats]:
    if workers <= 1 or len(cells) <= 1:
        yield from (work.cell(root, *cell) for cell in cells)
        return
    # Forked workers share the haystack's memory; elsewhere each gets a copy.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(min(workers, len(cells)), mp_context=context, initializer=_adopt, initargs=(work, root))
    try:
        # The longest first: the last to finish should be short.
        futures = [pool.submit(_one_cell, *cell) for cell in sorted(cells, key=lambda cell: -cell[0])]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise HarnessError(
            "a worker process died (out of memory?); run again to go on from the finished cells"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_adopted: tuple[_Work, Path] | None = None


def _adopt(work: _Work, root: Path) -> None:
    global _adopted
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _adopted = work, root
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _one_cell(length: int, depth: float) -> CellStats:
    if _adopted is None:
        raise DataError("worker without work")
    work, root = _adopted
    return work.cell(root, length, depth)


def _metadata(
    config: NeedleConfig, config_hash: str, haystack: Haystack, summary: Mapping[str, object], seconds: float
) -> dict[str, Any]:
    lengths, depths, per_cell = config.lengths, config.depths, config.num_samples
    return {
        "config_sha256": config_hash,
        "generator_version": GENERATOR_VERSION,
        "configuration": config.to_json(),
        "generation_stats": {
            "total_samples": summary["samples"],
            "lengths": lengths,
            "positions": depths,
            "generation_time": round(seconds, 3),
            "tokenizer": config.tokenizer_path,
            "haystack": haystack.name,
            "haystack_sha256": haystack.sha256,
            "haystack_tokens": haystack.n_tokens,
        },
        "sample_distribution": {
            "samples_per_length": {str(length): per_cell * len(depths) for length in lengths},
            "samples_per_position": {str(depth): per_cell * len(lengths) for depth in depths},
            "total_configurations": len(lengths) * len(depths),
        },
    }
