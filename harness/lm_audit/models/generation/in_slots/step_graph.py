"""A decoding step as a CUDA graph: one launch in place of a thousand, where the model permits it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from lm_audit.models.checks.agreement import distance, is_full_precision, step_limit
from lm_audit.models.generation.in_slots.slot_model import SlotModel
from lm_audit.models.scoring.limits import is_out_of_memory

_LOG = logging.getLogger(__name__)
_SHORT = 256
"""Columns by which the extent of short rows grows; longer ones grow by an eighth, so that graphs are few."""


class Stepper:
    """Steps of the first slots: from graphs on a GPU, each captured once and held against the plain step."""

    def __init__(self, model: SlotModel, tokens: torch.Tensor, lengths: torch.Tensor):
        self._model, self._tokens, self._lengths = model, tokens, lengths
        self._graphs: dict[tuple[int, int], tuple[Any, torch.Tensor]] = {}
        self._pool: Any = None
        self._refused = model.device.type != "cuda"

    def logits(self, width: int, extent: int) -> torch.Tensor:
        """Logits [width, vocabulary] of the first ``width`` slots, of which ``extent`` columns (1 or more) matter.

        What comes from a graph is overwritten by the next step.
        """
        if self._refused:
            return self._without_graph(width, extent)
        extent = min(rounded(extent), self._model.cache.capacity)
        by_length = self._model.steps_by_length
        known = self._graphs.get((width, 0 if by_length else extent))
        if known is not None:
            known[0].replay()
            return known[1]
        # Kernels are loaded by a plain launch, which a capture could not do.
        logits = self._plain(width, 0 if by_length else extent)
        if by_length is None:
            by_length, logits = self._tried_by_length(
                lambda: self._plain(width, 0), logits, lambda: self._plain(width, extent)
            )
            self._model.steps_by_length = by_length
        self._capture(width, 0 if by_length else extent, logits)
        return self._plain(width, extent) if self._refused else logits

    def _without_graph(self, width: int, extent: int) -> torch.Tensor:
        """On a CPU by each row's own length where that was found to be the step by masks; elsewhere by masks."""
        model = self._model
        if model.device.type != "cpu" or model.steps_by_length is False:
            return self._plain(width, extent)
        given = self._tokens[:width], self._lengths[:width], extent
        if model.steps_by_length is None:
            plain = self._plain(width, extent)
            model.steps_by_length, plain = self._tried_by_length(
                lambda: model.step_by_length(*given), plain, lambda: self._plain(width, extent)
            )
            return plain
        return model.step_by_length(*given)

    def _plain(self, width: int, extent: int) -> torch.Tensor:
        """A step with masks, or (extent 0) by kernels that go by each row's length."""
        if extent == 0:
            return self._model.step_by_length(self._tokens[:width], self._lengths[:width])
        return self._model.step(self._tokens[:width], self._lengths[:width], extent)

    def _tried_by_length(
        self, step: Callable[[], torch.Tensor], plain: torch.Tensor, again: Callable[[], torch.Tensor]
    ) -> tuple[bool, torch.Tensor]:
        """Whether the kernels give this step too, and its logits. It repeats what was just done, and loads the kernels
        before a capture.

        A step that is refused has written its own keys and values where those of this step were: it is done again.
        """
        try:
            reason = self._reason_against(step(), plain)
        except Exception as error:  # whatever a model does with attention that it was not written for
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        if reason is None:
            return True, plain
        _LOG.info("%s: steps attend through masks: %s", type(self._model.module).__name__, reason)
        return False, again()

    def _capture(self, width: int, extent: int, plain: torch.Tensor) -> None:
        """Keep a graph of this step. It repeats what was just done, which writes the same keys and values."""
        try:
            graph, logits = self._captured(width, extent)
            graph.replay()
            reason = self._reason_against(logits, plain)
        except Exception as error:  # whatever a model does that a graph cannot hold
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        if reason is not None:
            self._refuse(reason)
            return
        self._pool = self._pool or graph.pool()
        self._graphs[width, extent] = graph, logits

    def _captured(self, width: int, extent: int) -> tuple[Any, torch.Tensor]:
        """A graph of this step, and where it leaves its logits.

        The device goes on reading meanwhile. ``torch.cuda.graph`` waits for it and gives all free memory back first:
        that is done where memory would not do otherwise.
        """
        graph = torch.cuda.CUDAGraph()
        try:
            with _capturing(graph, self._pool):
                logits = self._plain(width, extent)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                logits = self._plain(width, extent)
        return graph, logits

    def _reason_against(self, logits: torch.Tensor, plain: torch.Tensor) -> str | None:
        return disagreement(logits, plain, single=is_full_precision(self._model.module))

    def _refuse(self, reason: str) -> None:
        self._refused = True
        self._graphs.clear()
        name = type(self._model.module).__name__
        _LOG.info("%s: steps are launched one by one, since a step gives no CUDA graph: %s", name, reason)


@contextmanager
def _capturing(graph: Any, pool: Any) -> Iterator[None]:
    """What is launched goes into the graph, on a stream of its own."""
    own: Any = torch.cuda.current_stream()
    beside: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    beside.wait_stream(own)
    collects = gc.isenabled()
    gc.disable()  # what the collector lets go of may ask the device, which a capture does not survive
    try:
        with torch.cuda.stream(beside):
            graph.capture_begin(**({} if pool is None else {"pool": pool}))
            try:
                yield
            finally:
                graph.capture_end()
    finally:
        if collects:
            gc.enable()
    own.wait_stream(beside)


def disagreement(logits: torch.Tensor, plain: torch.Tensor, *, single: bool) -> str | None:
    """By how much log-probabilities differ from the plain step's, where that is too much; ``single``: of float32.

    Equal infinities are no difference, and where the plain step gives NaN there is nothing to compare; NaN where it
    gives a number is one.
    """
    ours, own = logits.log_softmax(-1), plain.log_softmax(-1)
    off = torch.where((ours == own) | own.isnan(), 0.0, ours - own)
    worst = distance(off, full=single)
    return None if worst <= step_limit(full=single) else f"log-probabilities are off by {worst:.3g}"


def rounded(extent: int) -> int:
    """Columns of a graph: few sizes, at most an eighth too many."""
    unit = _SHORT
    while 16 * unit <= extent:
        unit *= 2
    return -(-extent // unit) * unit
