"""Norms and rotations of a model by kernels of one launch, for the length of a pass; each tried against its own form.

Only parts that give on random input what the kernel gives are replaced, so that it does not matter how a model names
or writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lm_audit.models.compat import has_hooks

_TURN = "apply_rotary_pos_emb"
_SAME = {torch.float32: 1e-5, torch.float16: 2**-9, torch.bfloat16: 2**-6}
"""Largest difference from the plain form, as a share of the largest value: one step of the dtype, or two."""


class FusedParts:
    """What of a model's body can be computed by kernels; nothing where there is no GPU or no Triton."""

    def __init__(self, body: Any):
        self._norms: list[tuple[Any, Callable[[Tensor], Tensor]]] = []
        self._turns: list[tuple[Any, Any]] = []
        by = _kernels(body)
        if by is not None:
            with torch.inference_mode():
                self._norms = [(part, found) for part in body.modules() if (found := _norm(part, by)) is not None]
                self._turns = [
                    (space, found) for space in _spaces(body) if (found := _turn(space, body, by)) is not None
                ]

    @property
    def counts(self) -> tuple[int, int]:
        """Norms, and modules of code whose rotation is replaced."""
        return len(self._norms), len(self._turns)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The parts replaced for as long as the context lasts."""
        kept = [(part, part.__dict__.get("forward")) for part, _ in self._norms]
        plain = [(space, vars(space)[_TURN]) for space, _ in self._turns]
        try:
            for part, fused in self._norms:
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
                return partial(_normed, part.forward, weight, eps, by, shifted)
    except Exception:  # whatever a part does with what it was not written for
        return None
    return None


def _normed(plain: Any, weight: Tensor, eps: float, by: Any, shifted: bool, x: Tensor) -> Tensor:
    fits = x.is_contiguous() and x.dtype == weight.dtype and x.device == weight.device
    found: Tensor = by.rms_norm(x, weight, eps, shifted=shifted) if fits else plain(x)
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
