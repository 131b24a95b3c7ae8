"""Preallocated keys and values: each row in a slot of its own, each token in the column of its position.

Nothing is padded: a row joins by writing from column 0 on, leaves by being forgotten, and goes back by a smaller
length, since what stands beyond a row's length is never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from lm_audit.models.compat import key_layers


@dataclass(frozen=True)
class Write:
    """Where a pass puts its keys and values, and what it then looks at.

    ``rows``, ``columns`` [rows, tokens]: slot and column of each token. ``extent``: columns looked at, from 0 on;
    ``None`` where the pass reads its own tokens alone. ``slots``: the slots looked at, as a range where they are one.
    ``fresh``: the tokens are the first so many columns of each slot of that range. ``by``: kernels that put the one
    token of each of the first slots (``kernels.elementwise``).
    """

    rows: torch.Tensor
    columns: torch.Tensor
    extent: int | None
    slots: slice | torch.Tensor
    fresh: int | None = None
    by: Any = None
    _places: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict, repr=False)

    def places(self, heads: int, columns: int) -> torch.Tensor:
        """[rows * tokens * heads]: where each head's state goes in slots of ``columns`` laid out one after the other.

        The same for all layers alike.
        """
        if (heads, columns) not in self._places:
            head = torch.arange(heads, device=self.rows.device)
            found = (self.rows[:, :, None] * heads + head) * columns + self.columns[:, :, None]
            self._places[heads, columns] = found.reshape(-1)
        return self._places[heads, columns]


class SlotLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """Keys and values of one layer: [slots, heads, capacity + 1, width]; the last column takes what nobody reads."""

    is_compileable = False
    is_sliding = False
    is_croppable = False

    def __init__(self, slots: int, capacity: int):
        super().__init__()  # type: ignore[no-untyped-call]
        self._slots, self._capacity = slots, capacity
        self.write: Write | None = None

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Room for all slots, of zeros: a masked column that holds NaN would still spoil a row."""
        self.device, self.dtype = key_states.device, key_states.dtype
        self.keys = self._room(key_states)
        self.values = self._room(value_states)
        self.is_initialized = True

    def _room(self, states: torch.Tensor) -> torch.Tensor:
        return states.new_zeros(self._slots, states.shape[1], self._capacity + 1, states.shape[3])

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store what is new; all that the pass may look at."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        write = self.write
        assert write is not None
        assert self.keys is not None and self.values is not None
        if write.by is not None and write.by.can_put(key_states, value_states, self.keys, self.values):
            write.by.put(key_states, value_states, self.keys, self.values, write.columns)
        else:
            self._store(write, self.keys, key_states)
            self._store(write, self.values, value_states)
        if write.extent is None:
            return key_states, value_states
        keys, values = self.keys[:, :, : write.extent], self.values[:, :, : write.extent]
        if isinstance(write.slots, slice):
            return keys[write.slots], values[write.slots]
        return keys.index_select(0, write.slots), values.index_select(0, write.slots)

    def _store(self, write: Write, room: torch.Tensor, states: torch.Tensor) -> None:
        if write.fresh is not None:
            room[write.slots, :, : write.fresh] = states
        elif room.device.type == "cpu":  # rows of memory, of which an assignment by indices would make single numbers
            places, width = write.places(room.shape[1], room.shape[2]), room.shape[3]
            room.view(-1, width).index_copy_(0, places, states.transpose(1, 2).reshape(-1, width))
        else:
            room[write.rows, :, write.columns] = states.transpose(1, 2)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """As of an empty cache: other passes bring their own mask."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """As of an empty cache: every pass brings its own positions."""
        return 0

    def get_max_length(self) -> int:
        """No limit that a model should see."""
        return -1

    def get_max_cache_shape(self) -> int:
        """The same under its older name."""
        return -1


class SlotCache(Cache):
    """All layers' slots. Set ``write`` before each pass."""

    def __init__(self, layers: int, slots: int, capacity: int):
        own = [SlotLayer(slots, capacity) for _ in range(layers)]
        super().__init__(layers=list(own))
        self._own = own
        self.slots, self.capacity = slots, capacity

    def put(self, write: Write) -> None:
        """Where the next pass writes."""
        for layer in self._own:
            layer.write = write

    def copy(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:
        """The first ``length`` columns of some slots into others; no slot is in both lists."""
        if not sources or not length:
            return
        for layer in self._own:
            for room in (layer.keys, layer.values):
                if room is not None:
                    source, target = (torch.tensor(list(one), device=room.device) for one in (sources, targets))
                    room[target, :, :length] = room[source, :, :length]


@dataclass(frozen=True)
class KeyShape:
    """What a model's cache is made of, as one short pass shows it: layers, and bytes of one token in all of them."""

    layers: int
    token_bytes: int


def key_shape(cache: object) -> KeyShape | None:
    """The shape of a cache that holds keys and values alone, each token's in its place; ``None`` for any other."""
    layers = key_layers(cache, windows=True)
    if not layers or any(layer.keys is None for layer in layers):
        return None
    return KeyShape(len(layers), sum(_token_bytes(layer.keys) + _token_bytes(layer.values) for layer in layers))


def _token_bytes(states: torch.Tensor) -> int:
    return int(states.shape[1] * states.shape[3] * states.element_size())
