"""Runs the kernels for norms, gates and new keys on a GPU (or in Triton's interpreter) beside their plain forms.

A script: ``python -m tests.models.kernels.elementwise_kernel_check``.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

from lm_audit.models.kernels import elementwise as kernels
from tests.triton_interpreter import mend

DEVICE = "cuda" if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1" else "cpu"
DTYPES = [torch.float32, torch.bfloat16]


def random(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(shape, device=DEVICE).to(dtype) * 3


def norms(dtype: torch.dtype) -> float:
    """The largest difference, as a share of the largest value, over layouts as attention has them."""
    joint = random(3, 2, 6 * 48, dtype=dtype)
    parts = [joint[..., :192].view(3, 2, 4, 48), joint[..., 192:].view(3, 2, 2, 48)]
    parts += [random(5, 48, dtype=dtype), random(2, 4, 3, 48, dtype=dtype), joint[:, :1, :192].view(3, 1, 4, 48)]
    weight, worst = random(48, dtype=dtype), 0.0
    for x in parts:
        assert kernels.can_norm(x), (x.shape, x.stride())
        normed = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).to(dtype)
        worst = max(worst, off(kernels.rms_norm(x, weight, 1e-6, shifted=False), weight * normed))
    assert not kernels.can_norm(random(2, 3, 4, 5, dtype=dtype).permute(2, 1, 0, 3))
    return worst


def gates(dtype: torch.dtype) -> float:
    joint = random(3, 2, 2 * 1500, dtype=dtype)
    pairs = [(joint[..., :1500], joint[..., 1500:]), (random(4, 7, dtype=dtype), random(4, 7, dtype=dtype))]
    worst = 0.0
    for gate, up in pairs:
        assert kernels.can_gate(gate, up)
        worst = max(worst, off(kernels.gated(gate, up), torch.nn.functional.silu(gate) * up))
    again = random(1, 2, 8, dtype=dtype).expand(3, 2, 8)
    assert not kernels.can_gate(again, again)
    return worst


def rooms(dtype: torch.dtype) -> float:
    """Keys and values of a joint product in their columns, and nothing else touched."""
    joint = random(3, 1, 4 * 80, dtype=dtype)
    key, value = (joint[..., a : a + 160].view(3, 1, 2, 80).transpose(1, 2) for a in (0, 160))
    key_room, value_room = (random(5, 2, 9, 80, dtype=dtype) for _ in range(2))
    columns = torch.tensor([[2], [8], [0]], device=DEVICE)
    assert kernels.can_put(key, value, key_room, value_room)
    wanted = key_room.clone(), value_room.clone()
    for row, column in enumerate(columns.flatten().tolist()):
        wanted[0][row, :, column], wanted[1][row, :, column] = key[row, :, 0], value[row, :, 0]
    kernels.put(key, value, key_room, value_room, columns)
    return float(not (torch.equal(key_room, wanted[0]) and torch.equal(value_room, wanted[1])))


def off(found: Tensor, wanted: Tensor) -> float:
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    return float((found.float() - wanted.float()).abs().max() / wanted.float().abs().max())


def main() -> int:
    if DEVICE == "cpu":
        mend()
    torch.manual_seed(0)
    bad = 0
    for dtype in DTYPES:
        limit = 1e-5 if dtype == torch.float32 else 2**-7
        for check in (norms, gates, rooms):
            worst = check(dtype)
            bad += worst > limit
            print(f"{check.__name__:6s} {dtype}: {worst:.2e} {'' if worst <= limit else 'WRONG'}")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
