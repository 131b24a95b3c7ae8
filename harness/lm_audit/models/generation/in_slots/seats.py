"""The decoding loop over slots: rows join as others leave, and every step takes the token of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lm_audit.models.generation.in_slots.slot_model import Part, SlotModel
from lm_audit.models.generation.in_slots.step_graph import Stepper
from lm_audit.models.generation.in_slots.table import (
    NOT_A_NUMBER,
    Launch,
    NotANumber,
    Overflow,
    Seat,
    Table,
    Work,
    runs_beside,
)
from lm_audit.models.generation.in_slots.upload import upload
from lm_audit.models.generation.memory import Budget
from lm_audit.models.generation.prefix_plan import common, shared_parts


class Loop:
    """Decodes the prompts ``order`` in slots of ``capacity`` columns, at most ``slots`` at once."""

    def __init__(self, model: SlotModel, work: Work, budget: Budget, *, slots: int, capacity: int):
        self._model, self._work, self._budget = model, work, budget
        self._slots, self._capacity = slots, capacity
        self._ahead = runs_beside(model.device)
        self._table = Table.of(slots)
        model.allocate(slots, capacity)
        self._tokens = torch.zeros(slots, dtype=torch.long, device=model.device)
        self._lengths = torch.zeros(slots, dtype=torch.long, device=model.device)
        self._stepper = Stepper(model, self._tokens, self._lengths)
        self._width = slots

    @torch.inference_mode()
    def run(self, order: Sequence[int]) -> None:
        """Decode; rows that need no token are done at once.

        Raises ``Overflow``, ``NotANumber`` and what the model raises, with every row that is done already handed over.
        """
        pending = sorted(order, key=lambda index: list(self._work.prompts[index]), reverse=True)
        launched: list[Launch] = []
        while pending or self._table.taken or launched:
            if pending and self._may_join(len(pending)):
                launched += self._under_way(self._join(pending))
            self._close_ranks(bool(pending))
            needed = any(seat is not None and seat.row.may_need(seat.ahead) for seat in self._table.seats)
            ahead = self._under_way(self._launch() if needed else None)
            for launch in launched:
                self._land(launch)
            launched = ahead

    def _under_way(self, launch: Launch | None) -> list[Launch]:
        """What is to be landed later: nothing where nothing runs beside this thread, whose tokens are taken at once."""
        if launch is None or self._ahead:
            return [] if launch is None else [launch]
        self._land(launch)
        return []

    def _may_join(self, pending: int) -> bool:
        """Whether enough slots are free: reading one prompt alone costs a pass as reading several does."""
        free = len(self._table.free)
        return free >= min(pending, max(1, self._slots // 8))

    def _join(self, pending: list[int]) -> Launch | None:
        """Read prompts into the free slots and choose each one's first token."""
        self._width = self._slots
        slots = self._table.free
        joining = [pending.pop() for _ in range(min(len(slots), len(pending)))]
        seats = [Seat(index, self._work.begin(index), self._work.prompts[index]) for index in joining]
        asked = [seat for seat in seats if not seat.row.finished or self._target(seat)]
        for seat in seats:
            if seat not in asked:
                self._work.done(seat.index, seat.row)
        if not asked:
            return None
        placed = self._placed(asked, slots)
        logits = torch.cat(self._read(placed))
        self._score(placed, logits)
        at, lengths = upload([[slot, len(seat.prompt)] for slot, seat in placed], self._model.device).unbind(1)
        self._lengths[at] = lengths
        writing = [place for place, (_, seat) in enumerate(placed) if not seat.row.finished]
        for place, (slot, seat) in enumerate(placed):
            self._table.prompts[slot] = seat.prompt
            if place in writing:
                self._table.seats[slot] = seat
            else:
                self._work.done(seat.index, seat.row)
        if not writing:
            return None
        places = upload(writing, logits.device)
        rows = [placed[place] for place in writing]
        chosen = self._choose(logits[places], [seat for _, seat in rows])
        self._tokens[at[places]] = chosen.clamp(min=0)
        for _, seat in rows:
            seat.ahead += 1
        return self._sent(chosen, rows)

    def _target(self, seat: Seat) -> Sequence[int]:
        return self._work.targets[seat.index] if self._work.targets is not None else ()

    def _placed(self, seats: list[Seat], slots: list[int]) -> list[tuple[int, Seat]]:
        """A slot for each, in the order of the prompts: of the free ones the one that holds most of its beginning."""
        if not any(self._table.prompts[slot] for slot in slots):
            return list(zip(slots, seats, strict=False))
        free = list(slots)
        placed = []
        for seat in seats:
            best = max(free, key=lambda slot: common(self._table.prompts[slot], seat.prompt))
            free.remove(best)
            placed.append((best, seat))
        return placed

    def _read(self, placed: list[tuple[int, Seat]]) -> list[torch.Tensor]:
        """Logits behind each prompt; what several have in common, or a slot holds already, is not read again."""
        prompts = [seat.prompt for _, seat in placed]
        had = self._reused(placed)
        shared = shared_parts(prompts, self._budget.worth)
        for level in sorted({part.level for part in shared}):
            parts = [part for part in shared if part.level == level]
            reading = []
            for part in parts:
                leader = max(part.rows, key=lambda row: had[row])
                if had[leader] < part.end:
                    ids = prompts[leader][had[leader] : part.end]
                    reading.append(Part(placed[leader][0], had[leader], ids, 0))
            if reading:
                self._model.read(reading, self._budget.tokens, self._budget.head_rows)
            for part in parts:
                leader = max(part.rows, key=lambda row: had[row])
                others = [row for row in part.rows if row != leader and had[row] < part.end]
                self._model.cache.copy([placed[leader][0]] * len(others), [placed[row][0] for row in others], part.end)
                for row in part.rows:
                    had[row] = max(had[row], part.end)
        own = [Part(slot, begun, seat.prompt[begun:], 1) for (slot, seat), begun in zip(placed, had, strict=True)]
        return self._model.read(own, self._budget.tokens, self._budget.head_rows)

    def _reused(self, placed: list[tuple[int, Seat]]) -> list[int]:
        """For each row how many of its tokens its slot holds, after the first took over what another slot holds."""
        had = [min(common(self._table.prompts[slot], seat.prompt), len(seat.prompt) - 1) for slot, seat in placed]
        slot, seat = placed[0]
        shares = [min(common(prompt, seat.prompt), len(seat.prompt) - 1) for prompt in self._table.prompts]
        best = max(range(len(shares)), key=lambda other: shares[other])
        if shares[best] - had[0] >= self._budget.worth and best not in [other for other, _ in placed]:
            self._model.cache.copy([best], [slot], shares[best])
            had[0] = shares[best]
        # Going on behind a short beginning costs the causal path of a whole prompt: not for a few tokens.
        return [begun if begun >= self._budget.worth else 0 for begun in had]

    def _score(self, placed: list[tuple[int, Seat]], logits: torch.Tensor) -> None:
        """Logits in the answer's place; what is read for them is out of sight again afterwards."""
        if self._work.scored is None:
            return
        asked = [(place, slot, seat) for place, (slot, seat) in enumerate(placed) if len(self._target(seat))]
        parts = [
            Part(slot, len(seat.prompt), self._target(seat)[:-1], len(self._target(seat)) - 1)
            for _, slot, seat in asked
            if len(self._target(seat)) > 1
        ]
        tables = iter(self._model.read(parts, self._budget.tokens, self._budget.head_rows) if parts else [])
        for place, _, seat in asked:
            rows = [logits[place : place + 1], *([next(tables)] if len(self._target(seat)) > 1 else [])]
            self._work.scored(seat.index, torch.cat(rows))

    def _launch(self) -> Launch:
        """Start a step of all rows."""
        rows = [(slot, seat) for slot, seat in enumerate(self._table.seats) if seat is not None]
        longest = max(seat.length + seat.ahead for _, seat in rows) + 1
        if max(seat.length for _, seat in rows) >= self._capacity:
            raise Overflow
        width = self._width
        logits = self._stepper.logits(width, min(longest, self._capacity))
        chosen = self._choose(logits, [self._table.seats[slot] for slot in range(width)])
        self._tokens[:width] = chosen.clamp(min=0)
        self._lengths[:width] = (self._lengths[:width] + 1).clamp(max=self._capacity)
        for _, seat in rows:
            seat.ahead += 1
        return self._sent(chosen, rows, picked=[slot for slot, _ in rows])

    def _choose(self, logits: torch.Tensor, seats: Sequence[Seat | None]) -> torch.Tensor:
        """The next token of each row on the device, ``NOT_A_NUMBER`` for one that holds NaN."""
        drawn = [None if seat is None else (seat.index, seat.chosen + seat.ahead) for seat in seats]
        chosen = self._work.picker.choose(logits, drawn)
        # The largest of logits of which one is NaN is NaN.
        return torch.where(logits.amax(dim=-1).isnan(), NOT_A_NUMBER, chosen)

    def _sent(self, chosen: torch.Tensor, rows: list[tuple[int, Seat]], picked: list[int] | None = None) -> Launch:
        """The tokens on their way to this thread."""
        places = picked if picked is not None else list(range(len(rows)))
        seats = [(place, seat, seat.age) for place, (_, seat) in zip(places, rows, strict=True)]
        if chosen.device.type != "cuda":
            return Launch(seats, chosen, None)
        host = torch.empty(chosen.shape, dtype=chosen.dtype, pin_memory=True)
        host.copy_(chosen, non_blocking=True)
        arrived: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return Launch(seats, host, arrived)

    def _land(self, launch: Launch) -> None:
        """Take a step's tokens in; rows that end leave, a row that must write another token goes back to it."""
        if launch.arrived is not None:
            launch.arrived.synchronize()
        tokens = launch.tokens.tolist()
        for place, seat, age in launch.seats:
            if seat.age == age and not seat.row.finished:
                self._take(seat, tokens[place])

    def _take(self, seat: Seat, token: int) -> None:
        row = seat.row
        forced = row.forced()
        if token == NOT_A_NUMBER:
            raise NotANumber(seat.index)
        row.add(token if forced is None else forced)
        seat.chosen += 1
        seat.ahead -= 1
        over = row.finished or (self._work.enough is not None and self._work.enough(seat.index, row))
        slot = self._table.seats.index(seat)
        if over:
            seat.age += 1
            self._table.seats[slot] = None
            self._work.done(seat.index, row)
        elif forced is not None and forced != token:
            seat.age, seat.ahead = seat.age + 1, 0
            self._tokens[slot] = forced
            self._lengths[slot] = seat.length

    def _close_ranks(self, pending: bool) -> None:
        """Move the last rows into places that were left, so that a step has fewer: on a GPU when half are left."""
        taken = self._table.taken
        if not taken or len(taken) == self._width:
            return
        if self._ahead and (pending or 2 * len(taken) > self._width):
            return
        width = len(taken) if not self._ahead else -(-self._width // 2)
        free = [slot for slot in range(width) if self._table.seats[slot] is None]
        for slot in [slot for slot in taken if slot >= width]:
            self._move(slot, free.pop())
        self._width = width

    def _move(self, source: int, target: int) -> None:
        seat = self._table.seats[source]
        assert seat is not None
        self._model.cache.copy([source], [target], min(seat.length + seat.ahead + 1, self._capacity))
        self._tokens[target], self._lengths[target] = self._tokens[source], self._lengths[source]
        self._table.seats[target], self._table.seats[source] = seat, None
        self._table.prompts[target] = self._table.prompts[source]
