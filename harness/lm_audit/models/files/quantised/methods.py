"""Checkpoints whose weights are quantised as ``transformers`` reads them: by ``quantization_config`` in config.json.

It is handed to ``transformers`` as it is. Here is only said by what a checkpoint was quantised, which packages reading
it takes, and, before anything loads, which of them is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import listed

PACKAGES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "aqlm": (("aqlm", "aqlm"),),
    "auto-round": (("auto_round", "auto-round"),),
    "awq": (("gptqmodel", "gptqmodel"),),
    "bitsandbytes": (("bitsandbytes", "bitsandbytes"),),
    "bitsandbytes_4bit": (("bitsandbytes", "bitsandbytes"),),
    "bitsandbytes_8bit": (("bitsandbytes", "bitsandbytes"),),
    "compressed-tensors": (("compressed_tensors", "compressed-tensors"),),
    "eetq": (("kernels", "kernels"),),
    "fbgemm_fp8": (("fbgemm_gpu", "fbgemm-gpu"),),
    "fouroversix": (("fouroversix", "fouroversix"),),
    "fp_quant": (("fp_quant", "fp_quant"),),
    "gptq": (("optimum", "optimum"), ("gptqmodel", "gptqmodel")),
    "hqq": (("hqq", "hqq"),),
    "quanto": (("optimum", "optimum-quanto"),),
    "quark": (("quark", "amd-quark"),),
    "sinq": (("sinq", "sinq"),),
    "spqr": (("spqr_quant", "spqr_quant"),),
    "torchao": (("torchao", "torchao"),),
    "vptq": (("vptq", "vptq"),),
}
"""Modules, and the packages that hold them, without which ``transformers`` reads no weights of a method.

All need ``accelerate``. A method that is not here needs nothing else (``PLAIN``), or is told of by ``transformers``
when the model loads.
"""

PLAIN = ("fp8", "mxfp4", "mxfp8")
"""Methods that need no package beside ``accelerate``, since their weights are de-quantised: see ``read_plain``."""


def read_plain(config: Mapping[str, object]) -> dict[str, Any]:
    """What ``from_pretrained`` is told so that weights in FP8 or MXFP4 are de-quantised, whatever the machine.

    Left to itself ``transformers`` does so where it sees no GPU, and else computes in them, even for a model on the
    CPU, by kernels which it fetches from the hub: code that nobody asked for, and other numbers.
    """
    settings = config.get("quantization_config")
    if not isinstance(settings, Mapping) or _method(settings) not in PLAIN:
        return {}
    from transformers.quantizers.auto import AutoQuantizationConfig

    untyped: Any = AutoQuantizationConfig
    return {"quantization_config": untyped.from_dict({**settings, "dequantize": True})}


def quantised_by(config: Mapping[str, object]) -> str | None:
    """By what a checkpoint is quantised: its method, with bits or format where they are stated; ``None``: it is not."""
    settings = config.get("quantization_config")
    if not settings:
        return None
    if not isinstance(settings, Mapping):
        return "an unknown method"
    details = [f"{settings[key]} bits" for key in ("bits", "nbits") if isinstance(settings.get(key), int)]
    details += ["4 bits"] if settings.get("load_in_4bit") is True else []
    details += ["8 bits"] if settings.get("load_in_8bit") is True else []
    details += [str(settings[key]) for key in ("fmt", "format") if isinstance(settings.get(key), str)]
    details += _scheme(settings.get("quant_type"))
    method = _method(settings) or "an unknown method"
    return " ".join([method, *([f"({', '.join(details)})"] if details else [])])[:120]


def _scheme(stated: object) -> list[str]:
    """The scheme of torchao: its name, or the name of the class that its settings were written by."""
    if isinstance(stated, Mapping):
        stated = next((value.get("_type") for value in stated.values() if isinstance(value, Mapping)), None)
    return [stated] if isinstance(stated, str) else []


def check_quantised(config: Mapping[str, object], folder: Path) -> None:
    """``ModelError`` for settings that name no method or one that nobody knows, and where a package is absent."""
    settings = config.get("quantization_config")
    if not settings:
        return
    if not isinstance(settings, Mapping) or _method(settings) is None:
        raise ModelError(
            f"{folder / 'config.json'}: quantization_config is {settings!r:.80}; expected an object whose quant_method "
            "says how the weights were quantised"
        )
    method = _method(settings)
    if method not in PACKAGES and method not in PLAIN and method not in _known_methods():
        # transformers would take the packed weights for the weights themselves, with a warning.
        known = ", ".join(sorted({*PACKAGES, *PLAIN, *_known_methods()}))
        raise ModelError(
            f"{folder / 'config.json'}: quantization_config names the method {method!r:.60}, which this transformers "
            f"does not know; it knows {known}"
        )
    needed = (*PACKAGES.get(method or "", ()), ("accelerate", "accelerate"))
    absent = [package for module, package in needed if find_spec(module) is None]
    if absent:
        raise ModelError(
            f"{folder}: its weights are quantised by {quantised_by(config)}, which transformers reads with "
            f"{' and '.join(absent)}: pip install {' '.join(absent)}"
        )


def check_packed_once(config: Mapping[str, object], names: Iterable[str], folder: Path) -> None:
    """``ModelError`` for weights that a checkpoint in MXFP4 holds packed and as they are: which of them counts hangs on
    the order in which they are read.
    """
    every = set(names) if str(quantised_by(config)).startswith("mxfp4") else set()
    twice = sorted(name for name in every if f"{name}_blocks" in every)
    if twice:
        raise ModelError(f"{folder} holds weights twice, packed in blocks and as they are: {listed(twice)}")


def _known_methods() -> frozenset[str]:
    """The methods that this ``transformers`` reads; asked only for one that the tables do not hold: it loads torch."""
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    return frozenset(AUTO_QUANTIZATION_CONFIG_MAPPING)


def _method(settings: Mapping[str, object]) -> str | None:
    """The method; old checkpoints of bitsandbytes name none."""
    method = settings.get("quant_method")
    if isinstance(method, str) and method:
        return method
    return "bitsandbytes" if settings.get("load_in_4bit") or settings.get("load_in_8bit") else None
