"""Scales of weights in FP8: one each for a block, a row or a tensor, held to the blocks that config.json states.

transformers takes a scale of 1 where there is none and, where it de-quantises, spreads the scales that there are evenly
over the weights: a grid of another shape gives other weights and no word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import listed
from lm_audit.models.files.safetensors_file import TensorEntry

_METHODS = ("fp8", "mxfp8")


def check_scales(config: Mapping[str, object], entries: Sequence[TensorEntry], folder: Path) -> None:
    """``ModelError`` for weights in FP8 without their scales, with more or fewer than they have blocks, or whose last
    blocks are smaller than the others.
    """
    if not _is_fp8(config):
        return
    scales = _scales(entries)
    lacking = [weight.name for weight, scale in scales if scale is None]
    if lacking:
        raise ModelError(f"{folder}: weights in FP8 without their scales: {listed(lacking)}")
    block = _block(config)
    odd = [
        f"{scale.name} {list(scale.shape)} for {list(weight.shape)}"
        for weight, scale in scales
        if block and scale and prod(scale.shape) > 1 and scale.shape[-2:] != _blocks(weight, block)
    ]
    if block and odd:
        raise ModelError(
            f"{folder}: its config.json has a scale for each block of {block[0]} x {block[1]} weights, and the scales"
            f" are others: {listed(odd)}"
        )
    torn = [
        f"{weight.name} {list(weight.shape)}"
        for weight, scale in scales
        if block
        and scale
        and prod(scale.shape) > 1
        and any(n % b for n, b in zip(weight.shape[-2:], block, strict=True))
    ]
    if torn:
        raise ModelError(
            f"{folder}: blocks of {list(block or ())} do not fill {listed(torn)}; transformers spreads their scales"
            " evenly when it de-quantises them, which gives other weights: de-quantise the model yourself"
        )


def _settings(config: Mapping[str, object]) -> Mapping[str, object]:
    settings = config.get("quantization_config")
    return settings if isinstance(settings, Mapping) else {}


def _is_fp8(config: Mapping[str, object]) -> bool:
    return _settings(config).get("quant_method") in _METHODS


def _block(config: Mapping[str, object]) -> tuple[int, int] | None:
    """Rows and columns of a block; ``None`` where the config states none."""
    stated = _settings(config).get("weight_block_size")
    if not isinstance(stated, list) or len(stated) != 2:
        return None
    rows, columns = stated
    both = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in stated)
    return (rows, columns) if both else None


def _blocks(weight: TensorEntry, block: tuple[int, int]) -> tuple[int, ...]:
    return tuple(-(-n // b) for n, b in zip(weight.shape[-2:], block, strict=True))


def _scales(entries: Sequence[TensorEntry]) -> list[tuple[TensorEntry, TensorEntry | None]]:
    """Each matrix in FP8 with its scales."""
    by_name = {entry.name: entry for entry in entries}
    weights = (entry for entry in entries if entry.dtype.startswith("F8") and "scale" not in entry.name)
    return [
        (weight, next((by_name[name] for name in _names(weight.name) if name in by_name), None)) for weight in weights
    ]


def _names(weight: str) -> Iterator[str]:
    for stem in (weight, weight.removesuffix(".weight")):
        yield from (f"{stem}{joint}{ending}" for joint in "._" for ending in ("scale_inv", "scale"))
    yield f"{weight.removesuffix('.weight')}.qscale_weight"
