"""Norms, rotations and gates of a model by kernels of one launch, for the length of a pass; each tried against its own.

Only parts that give on random input what the kernel gives are replaced, so that it does not matter how a model names
or writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from lm_audit.models.compat import has_hooks

_TURN = "apply_rotary_pos_emb"
_SAME = {torch.float32: 1e-5, torch.float16: 2**-9, torch.bfloat16: 2**-6}
"""Largest difference from the plain form, as a share of the largest value: one step of the dtype, or two."""


class FusedParts:
    """What of a model's body can be computed by kernels; nothing where there is no GPU or no Triton.

    ``FusedParts.of`` keeps what was found for a body as long as its parts are those that were tried.
    """

    @classmethod
    def of(cls, body: Any) -> FusedParts:
        """The parts of this body, tried once."""
        known = _KNOWN.get(body)
        if known is None or known._tried != _state(body):
            known = _KNOWN[body] = cls(body)
        return known

    def __init__(self, body: Any):
        self._norms: list[tuple[Any, Callable[[Tensor], Tensor]]] = []
        self._turns: list[tuple[Any, Any]] = []
        self._gates: list[tuple[Any, Callable[[Tensor], Tensor]]] = []
        self._tried = _state(body)
        self.kernels = by = _kernels(body)
        if by is not None:
            with torch.inference_mode():
                self._norms = [(part, found) for part in body.modules() if (found := _norm(part, by)) is not None]
                self._turns = [
                    (space, found) for space in _spaces(body) if (found := _turn(space, body, by)) is not None
                ]
                self._gates = [(part, found) for part in body.modules() if (found := _gate(part, by)) is not None]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Norms, modules of code whose rotation is replaced, and gated layers."""
        return len(self._norms), len(self._turns), len(self._gates)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The parts replaced for as long as the context lasts."""
        parts = self._norms + self._gates
        kept = [(part, part.__dict__.get("forward")) for part, _ in parts]
        plain = [(space, vars(space)[_TURN]) for space, _ in self._turns]
        try:
            for part, fused in parts:
                part.__dict__["forward"] = fused
            for space, turn in self._turns:
                setattr(space, _TURN, turn)
            yield
        finally:
            for part, own in kept:
                if own is None:
                    part.__dict__.pop("forward", None)
                else:
                    part.__dict__["forward"] = own
            for space, own in plain:
                setattr(space, _TURN, own)


_KNOWN: WeakKeyDictionary[Any, FusedParts] = WeakKeyDictionary()


def _state(body: Any) -> list[tuple[object, ...]]:
    """What a trial depends on: the parts, where and of what kind their weights are, and who listens to them."""
    weights = ((part, getattr(part, "weight", None)) for part in body.modules())
    return [
        (id(part), has_hooks(part), getattr(weight, "dtype", None), getattr(weight, "device", None))
        for part, weight in weights
    ]


def _kernels(body: Any) -> Any:
    weight = next(iter(body.parameters()), None)
    if weight is None or weight.device.type != "cuda":
        return None
    try:
        from lm_audit.models.kernels import elementwise
    except ImportError:
        return None
    return elementwise


def _norm(part: Any, by: Any) -> Callable[[Tensor], Tensor] | None:
    """The kernel in place of this part, where it is an RMS norm and gives the same."""
    weight: Any = getattr(part, "weight", None)
    eps = _epsilon(part)
    own = list(part.children()), [name for name, _ in part.named_parameters(recurse=False)]
    if own != ([], ["weight"]) or eps is None or weight.ndim != 1 or weight.dtype not in _SAME or len(weight) > 16384:
        return None
    if has_hooks(part):
        return None
    generator = torch.Generator(weight.device).manual_seed(1)  # the caller's random state stays as it is
    x = torch.randn(3, len(weight), device=weight.device, generator=generator).to(weight.dtype) * 3
    try:
        plain = part(x)
        for shifted in (False, True):
            if _same(by.rms_norm(x, weight, eps, shifted=shifted), plain):
                return partial(_normed, part.forward, part, eps, by, shifted)
    except Exception:  # whatever a part does with what it was not written for
        return None
    return None


def _normed(plain: Any, part: Any, eps: float, by: Any, shifted: bool, x: Tensor) -> Tensor:
    weight = part.weight
    fits = by.can_norm(x) and x.dtype == weight.dtype and x.device == weight.device
    found: Tensor = by.rms_norm(x, weight, eps, shifted=shifted) if fits else plain(x)
    return found


_GATED = ["act_fn", "down_proj", "gate_proj", "up_proj"]


def _gate(part: Any, by: Any) -> Callable[[Tensor], Tensor] | None:
    """The gated layer with the kernel between its products, where it gives the same."""
    if sorted(name for name, _ in part.named_children()) != _GATED or has_hooks(part.act_fn):
        return None
    weight: Any = getattr(part.gate_proj, "weight", None)
    width = getattr(part.gate_proj, "in_features", None)
    if width is None or weight is None or weight.dtype not in _SAME:
        return None
    generator = torch.Generator(weight.device).manual_seed(1)
    x = torch.randn(3, width, device=weight.device, generator=generator).to(weight.dtype)
    spread = torch.linspace(-9, 9, 73, device=weight.device).to(weight.dtype)
    fused = partial(_gated, part, by)
    try:
        # Near 0 one activation is like another: that it is this one shows where it is spread out.
        is_silu = torch.equal(part.act_fn(spread), torch.nn.functional.silu(spread))
        return fused if is_silu and _same(fused(x), part(x)) else None
    except Exception:  # whatever a layer does with what it was not written for
        return None


def _gated(part: Any, by: Any, x: Tensor) -> Tensor:
    gate, up = part.gate_proj(x), part.up_proj(x)
    between = by.gated(gate, up) if by.can_gate(gate, up) else part.act_fn(gate) * up
    found: Tensor = part.down_proj(between)
    return found


def _epsilon(part: object) -> float | None:
    values = [getattr(part, name, None) for name in ("variance_epsilon", "eps")]
    return next((value for value in values if isinstance(value, float)), None)


def _spaces(body: Any) -> list[Any]:
    """The modules of code that the body's parts come from and that hold a rotation."""
    names = dict.fromkeys(type(part).__module__ for part in body.modules())
    return [sys.modules[name] for name in names if _TURN in vars(sys.modules.get(name, object()))]


def _turn(space: object, body: Any, by: Any) -> Any:
    plain = vars(space)[_TURN]
    weight = next(iter(body.parameters()))
    generator = torch.Generator().manual_seed(1)

    def make(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(weight.device, weight.dtype)

    query, key = make(2, 5, 4, 16).transpose(1, 2), make(2, 5, 2, 16).transpose(1, 2)
    cosine, sine = make(2, 5, 16), make(2, 5, 16)

    def turn(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *more: object, **named: Any) -> Any:
        if more or named or not by.can_turn(q, k, cos, sin):
            return plain(q, k, cos, sin, *more, **named)
        return by.turn(q, k, cos, sin)

    try:
        pairs = zip(turn(query, key, cosine, sine), plain(query, key, cosine, sine), strict=True)
        return turn if all(_same(one, other) for one, other in pairs) else None
    except Exception:  # whatever a rotation of another form does with these
        return None


def _same(one: Tensor, plain: Tensor) -> bool:
    if not isinstance(plain, Tensor) or plain.shape != one.shape or plain.dtype != one.dtype:
        return False
    off, largest = (one.float() - plain.float()).abs().max(), plain.float().abs().max()
    return bool(off <= _SAME.get(one.dtype, 0.0) * largest)
