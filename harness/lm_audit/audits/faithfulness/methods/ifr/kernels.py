"""Triton kernels of span IFR on a GPU: attention pooled over rows and proximities, without writing either down.

``pooled_attention`` reads queries and keys twice (row sums first, then weighted column sums), as flash attention does;
``span_proximities`` multiplies values and output weights tile by tile and reduces each tile at once. Both agree with
the plain forms in :mod:`heads` and :mod:`proximity`, which serve wherever Triton is absent.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from lm_audit.audits.faithfulness.methods.ifr.programs import column_sums, proximity, row_sums, sink_proximity

LOG2_E = 1.4426950408889634
SINK_TILE = {"BJ": 128, "BD": 16, "num_warps": 4, "num_stages": 3}
ROW_TILE = {"BM": 64, "BN": 128, "num_warps": 4, "num_stages": 3}
COLUMN_TILE = {"BM": 128, "BN": 64, "num_warps": 4, "num_stages": 3}
"""Tiles of heads up to 128 wide; wider ones, and float32, get smaller ones."""


def supported(tensor: Tensor) -> bool:
    """Whether the kernels take heads of this width (a power of two from 16 to 256) on this device."""
    width = tensor.shape[-1]
    return tensor.is_cuda and 16 <= width <= 256 and width & (width - 1) == 0


def _precision(dtype: torch.dtype) -> str:
    return "ieee" if dtype == torch.float32 else "tf32"


def pooled_attention(
    queries: Tensor,
    keys: Tensor,
    first: int,
    weights: Tensor,
    scaling: float,
    window: int | None,
    sums: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``sum over rows of weight * attention``, H x T; ``queries`` H x R x e sit at positions ``first`` and on.

    Also the log-sum-exp of each row (base 2, H x R), which is the same whatever the weights: given as ``sums``, the
    keys are read once instead of twice.
    """
    heads, rows, width = queries.shape
    queries, keys = _by_rows(queries), _by_rows(keys)
    length, groups = keys.shape[1], heads // keys.shape[0]
    pooled = torch.empty(heads, length, device=keys.device, dtype=torch.float32)
    by_row, by_column = (_tile(tile, keys) for tile in (ROW_TILE, COLUMN_TILE))
    settings: dict[str, Any] = {"E": width, "WINDOW": window is not None, "PRECISION": _precision(keys.dtype)}
    strides = (queries.stride(0), queries.stride(1), keys.stride(0), keys.stride(1))
    shared = (rows, length, first, groups, scaling * LOG2_E, window or 0, *strides)
    if sums is None:
        sums = torch.empty(heads, rows, device=keys.device, dtype=torch.float32)
        row_sums[triton.cdiv(rows, by_row["BM"]), heads](queries, keys, sums, *shared, **settings, **by_row)
    column_sums[triton.cdiv(length, by_column["BN"]), heads](
        queries, keys, sums, weights.float().contiguous(), pooled, *shared, **settings, **by_column
    )
    return pooled, sums


def _by_rows(states: Tensor) -> Tensor:
    """The same with the elements of a row side by side, as the kernels read them."""
    return states if states.stride(-1) == 1 else states.contiguous()


def _tile(tile: dict[str, int], keys: Tensor) -> dict[str, int]:
    if keys.shape[-1] <= 128 and keys.dtype != torch.float32:
        return tile
    return {"BM": 64, "BN": 64, "num_warps": 8 if keys.shape[-1] > 64 else 4, "num_stages": 2}


def span_proximities(values: Tensor, output: Tensor, pooled: Tensor, whole: Tensor, stop: int) -> Tensor:
    """Proximities H x stop of ``pooled[h, j] W_O[:, h] v[j, g(h)]`` to ``whole``; ``values`` K x T x e, ``output`` d
    x He.
    """
    heads, length = pooled.shape
    values, output = _by_rows(values), output.contiguous()
    result = torch.empty(heads, stop, device=pooled.device, dtype=torch.float32)
    block = 128 if values.shape[-1] <= 128 else 64
    grid = (triton.cdiv(stop, block), heads)
    proximity[grid](
        values, output, pooled.contiguous(), whole.float().contiguous(), result, stop, length,
        heads // values.shape[0], output.shape[0], values.stride(0), values.stride(1), output.stride(0),
        E=values.shape[-1], BJ=block, BD=64, PRECISION=_precision(values.dtype), num_warps=8,
    )  # fmt: skip
    return result


def sink_proximities(values: Tensor, output: Tensor, attention: Tensor, wholes: Tensor, first: int) -> Tensor:
    """Proximities H x G x T of every message to each sink's vector; sinks sit at positions ``first`` and on."""
    heads, sinks, length = attention.shape
    values, output = _by_rows(values), output.contiguous()
    result = torch.empty_like(attention)
    wholes = wholes.float().contiguous()
    tile = SINK_TILE
    grid = (triton.cdiv(length, tile["BJ"]), heads, triton.cdiv(sinks, 8))
    sink_proximity[grid](
        values, output, attention.contiguous(), wholes, wholes.abs().sum(-1), result, sinks, length, first,
        heads // values.shape[0], output.shape[0], values.stride(0), values.stride(1), output.stride(0),
        E=values.shape[-1], **tile, PRECISION=_precision(values.dtype),
    )  # fmt: skip
    return result
