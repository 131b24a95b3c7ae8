"""A model over preallocated slots: reading parts of prompts, and one token of every row at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import text_config
from lm_audit.models.generation.in_slots.slots import KeyShape, SlotCache, Write
from lm_audit.models.generation.in_slots.upload import upload
from lm_audit.models.kernels import attending as kernel_attention
from lm_audit.models.kernels.attending import KernelUnfit, RowAttention, attending, no_mask
from lm_audit.models.kernels.fused_parts import FusedParts
from lm_audit.models.kernels.joint_weights import JointWeights
from lm_audit.models.scoring.body import Body
from lm_audit.models.scoring.head import Head

_MASK_CELLS = 2**27
"""Cells of a mask at once: queries times columns."""

_ENOUGH = 8192
_ENOUGH_ON_A_CPU = 128
"""Tokens of a pass from which on more of them make it no faster a token."""


@dataclass(frozen=True)
class Part:
    """Tokens to read into a slot behind the ``begin`` that it holds; logits behind the last ``wanted`` of them."""

    slot: int
    begin: int
    ids: Sequence[int]
    wanted: int

    @property
    def end(self) -> int:
        """Tokens in the slot afterwards."""
        return self.begin + len(self.ids)


class SlotModel:
    """Reads into slots with the model's own body and head.

    Columns are positions, so that masks, windows and rotations are those of each row by itself. ``tokens_read`` counts
    what went through the model in ``read``. ``steps_by_length``: whether ``step_by_length`` was found to be ``step``.
    """

    def __init__(self, module: CausalModule, device: torch.device, shape: KeyShape):
        self.module, self.device, self.shape = module, device, shape
        self._body = Body(module)
        self._head = Head(self._body.causal, self._body.model)
        self._masks = _mask_rules(module.config)
        self._fused = FusedParts.of(self._body.model)
        self._joint = JointWeights(module)
        accepts = inspect.signature(self._body.model.forward).parameters
        self._cache_name = "cache" if "cache" in accepts else "past_key_values"
        self.takes_positions = "position_ids" in accepts and "attention_mask" in accepts
        self._output_type: Any = None
        self.tokens_read = 0
        self.steps_by_length: bool | None = None
        self.cache = SlotCache(shape.layers, 0, 0)

    def allocate(self, slots: int, capacity: int) -> None:
        """Fresh slots of ``capacity`` columns; what the old ones held is gone."""
        self.cache = SlotCache(self.shape.layers, slots, capacity)

    def release(self) -> None:
        """Give the memory of all slots back."""
        self.cache = SlotCache(self.shape.layers, 0, 0)

    def read(self, parts: Sequence[Part], tokens: int, head_rows: int) -> list[torch.Tensor]:
        """Logits (float32) [wanted, vocabulary] of each part; some ``tokens`` go through the model at once."""
        found: dict[int, torch.Tensor] = {}
        for batch in self._batches(parts, tokens):
            states = self._pass([parts[number] for number in batch])
            wanted = [number for number in batch if parts[number].wanted]
            for number, hidden in zip(batch, states, strict=True):
                if number in wanted:
                    found[number] = hidden
        sizes = {number: len(hidden) for number, hidden in found.items()}
        if not found:
            return [torch.empty(0, 0, device=self.device) for _ in parts]
        table: Any = self._logits(torch.cat([found[number] for number in sizes]), head_rows)
        pieces = dict(zip(sizes, table.split(list(sizes.values())), strict=True))
        return [pieces.get(number, table[:0]) for number in range(len(parts))]

    def step(self, ids: torch.Tensor, lengths: torch.Tensor, extent: int) -> torch.Tensor:
        """Logits (float32) [rows, vocabulary] behind one more token of each of the first slots.

        ``ids`` and ``lengths`` [rows]: the token, and how many its slot holds before it; ``extent`` columns are looked
        at, more than any of the lengths. Waits for nothing, so that a CUDA graph can be made of it.
        """
        positions = self._place_one_each(lengths, extent)
        hidden = self._run(ids[:, None], positions, self._mask(positions, extent))
        return self._head.logits(hidden[:, -1], self._output_type).float()

    def step_by_length(self, ids: torch.Tensor, lengths: torch.Tensor, extent: int | None = None) -> torch.Tensor:
        """The same step, each slot read as far as it is filled, by kernels and without a mask of the model's own.

        ``extent``: columns of which none is needed beyond; ``None``: all. Raises ``KernelUnfit`` where there are no
        kernels for this model.
        """
        by = kernel_attention.row_kernels(self.device)
        if by is None or not self._windows_alone:
            raise KernelUnfit(
                "its layers look at less than a window of the text" if by else "no kernels on this device"
            )
        positions = self._place_one_each(lengths, self.cache.capacity + 1 if extent is None else extent)
        how = RowAttention(by, positions[:, 0], self._window)
        mask = no_mask(self.device, self._body.causal.dtype)
        with attending(how, by):
            hidden = self._run(
                ids[:, None], positions, dict.fromkeys(self._masks, mask) if len(self._masks) > 1 else mask
            )
        if how.layers != self.shape.layers:
            raise KernelUnfit(f"{how.layers} of its {self.shape.layers} layers attend through transformers' interface")
        return self._head.logits(hidden[:, -1], self._output_type).float()

    def _place_one_each(self, lengths: torch.Tensor, extent: int) -> torch.Tensor:
        """The next pass puts one token of each of the first slots behind its ``lengths``; their positions [rows, 1]."""
        rows, columns = len(lengths), lengths[:, None]
        slots = torch.arange(rows, device=self.device)[:, None]
        self.cache.put(Write(slots, columns, extent, slice(0, rows), by=self._fused.kernels))
        return columns.clamp(max=max(0, self.cache.capacity - 1))

    @property
    def _windows_alone(self) -> bool:
        return "chunked_attention" not in self._masks or self._masks["chunked_attention"] is None

    def _window(self, layer: Any) -> int | None:
        """How many columns a layer looks back over, its own included; ``None``: all."""
        text = text_config(self.module.config)
        kinds = getattr(text, "layer_types", None)
        kind = kinds[layer.layer_idx] if kinds else "all"
        if self._masks.get(kind) is None:
            return None
        return int(text.sliding_window)

    def _batches(self, parts: Sequence[Part], tokens: int) -> Iterator[list[int]]:
        """Parts that are read together: all from column 0 or all behind something, of like length.

        A pass that has enough to do ends where the next part is shorter, if what is left is enough for another.
        """
        batch: list[int] = []
        order = sorted(range(len(parts)), key=lambda n: (parts[n].begin > 0, -len(parts[n].ids)))
        left = sum(len(part.ids) for part in parts)
        enough = _ENOUGH_ON_A_CPU if self.device.type == "cpu" else _ENOUGH
        for number in order:
            part = parts[number]
            if batch:
                first = parts[batch[0]]
                full = (len(batch) + 1) * len(first.ids) > tokens
                sparse = 4 * len(part.ids) < len(first.ids) and len(first.ids) > 32
                shorter = 16 * len(part.ids) < 15 * len(first.ids)
                done = shorter and min(len(batch) * len(first.ids), left) >= enough
                if full or sparse or done or (part.begin > 0) != (first.begin > 0):
                    yield batch
                    batch = []
            batch.append(number)
            left -= len(part.ids)
        if batch:
            yield batch

    def _pass(self, parts: Sequence[Part]) -> list[torch.Tensor]:
        """Hidden states [wanted, width] of each part."""
        self.tokens_read += sum(len(part.ids) for part in parts)
        extent = None if all(part.begin == 0 for part in parts) else max(part.end for part in parts)
        longest = max(len(part.ids) for part in parts)
        step = longest if extent is None else max(16, _MASK_CELLS // (extent * len(parts)))
        if step >= longest:
            return self._one_pass(parts, extent)
        assert all(part.wanted <= 1 for part in parts) or len(parts) == 1
        last: list[torch.Tensor] = [torch.empty(0, device=self.device)] * len(parts)
        for start in range(0, longest, step):
            pieces = [
                (place, _piece(part, start, start + step)) for place, part in enumerate(parts) if len(part.ids) > start
            ]
            for (place, piece), hidden in zip(pieces, self._one_pass([p for _, p in pieces], extent), strict=True):
                if piece.wanted:
                    last[place] = torch.cat([last[place], hidden]) if last[place].ndim == 2 else hidden
        return last

    def _one_pass(self, parts: Sequence[Part], extent: int | None) -> list[torch.Tensor]:
        longest = max(len(part.ids) for part in parts)
        ids = upload([[*part.ids, *[0] * (longest - len(part.ids))] for part in parts], self.device)
        write, positions = self._place(parts, longest, extent)
        self.cache.put(write)
        hidden = self._run(ids, positions, None if extent is None else self._mask(positions, extent))
        return [hidden[place, len(p.ids) - p.wanted : len(p.ids)] for place, p in enumerate(parts)]

    def _place(self, parts: Sequence[Part], longest: int, extent: int | None) -> tuple[Write, torch.Tensor]:
        """Where each token is put, and its position [parts, longest]; what fills a short part up goes to the spare
        column."""
        slots = [part.slot for part in parts]
        at = upload(slots, self.device)
        in_order = slots == list(range(slots[0], slots[0] + len(slots)))
        looked = slice(slots[0], slots[0] + len(slots)) if in_order else at
        rows = at[:, None].expand(-1, longest)
        places = torch.arange(longest, device=self.device)
        if extent is None and in_order and all(len(part.ids) == longest for part in parts):
            columns = places.expand(len(parts), -1)
            return Write(rows, columns, extent, looked, fresh=longest), columns
        bounds = upload([[part.begin, part.end] for part in parts], self.device)
        begun, ends = bounds[:, :1], bounds[:, 1:]
        positions = torch.minimum(begun + places, ends - 1)
        columns = torch.where(begun + places < ends, positions, self.cache.capacity)
        return Write(rows, columns, extent, looked), positions

    def _run(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: dict[str, torch.Tensor] | torch.Tensor | None
    ) -> torch.Tensor:
        arguments: dict[str, Any] = {self._cache_name: self.cache, "use_cache": True, "attention_mask": mask}
        with self._fused(), self._joint():
            output = self._body.model(input_ids=ids, position_ids=positions, **arguments)
        self._output_type = type(output)
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def _logits(self, hidden: Any, rows: int) -> torch.Tensor:
        tables = [self._head.logits(part, self._output_type).float() for part in hidden.split(rows)]
        return tables[0] if len(tables) == 1 else torch.cat(tables)

    def _mask(self, positions: torch.Tensor, extent: int) -> Any:
        """What each token may see, [rows, 1, tokens, extent], additive; for each kind of layer where they differ."""
        columns, own = torch.arange(extent, device=self.device), positions[:, None, :, None]
        causal = columns <= own
        dtype = self._body.causal.dtype
        masks = {}
        for kind, rule in self._masks.items():
            sees = causal if rule is None else causal & rule(columns, own)
            mask = torch.zeros(sees.shape, dtype=dtype, device=self.device)
            masks[kind] = mask.masked_fill_(~sees, torch.finfo(dtype).min)
        return masks if len(masks) > 1 else next(iter(masks.values()))


def _piece(part: Part, start: int, stop: int) -> Part:
    ids = part.ids[start:stop]
    first_wanted = len(part.ids) - part.wanted
    wanted = max(0, min(len(ids), start + len(ids) - first_wanted))
    return Part(part.slot, part.begin + start, ids, wanted)


Rule = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _mask_rules(config: object) -> dict[str, Rule | None]:
    """For each kind of attention layer what it sees of the text before a token; ``None``: all of it."""
    text = text_config(config)
    window, chunk = getattr(text, "sliding_window", None), getattr(text, "attention_chunk_size", None)
    rules: dict[str, Rule | None] = {
        "full_attention": None,
        "sliding_attention": (lambda columns, own: columns > own - window) if window else None,
        "chunked_attention": (lambda columns, own: columns // chunk == own // chunk) if chunk else None,
    }
    kinds = getattr(text, "layer_types", None)
    if not kinds:
        return {"all": rules["sliding_attention"]}
    return {kind: rules.get(kind) for kind in dict.fromkeys(kinds)}
