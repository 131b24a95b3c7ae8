"""Loaded models, kept by a byte budget."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from lm_audit.models.causal_module import CausalModule
from lm_audit.models.files.source import Spec, find_source
from lm_audit.models.loading.devices import check_device_name, dtype_name
from lm_audit.models.loading.from_spec import load_model
from lm_audit.models.loading.placement import DeviceMap
from lm_audit.models.loading.spec import parse_spec

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


class ModelCache:
    """The models of one process: the least recently used leave when ``budget_bytes`` of weights would be exceeded.

    The budget counts weights at their full size, although processes share the pages of those on CPU. A model larger
    than the budget is loaded all the same, alone.
    """

    def __init__(self, budget_bytes: int):
        self.budget_bytes = budget_bytes
        self.loads = 0
        self._models: OrderedDict[tuple[str, ...], LanguageModel] = OrderedDict()

    def get(
        self,
        spec: Spec,
        *,
        device: object = "auto",
        dtype: object = "auto",
        trust_remote_code: bool = False,
        device_map: DeviceMap = None,
    ) -> LanguageModel:
        """The loaded model, from the cache or by :func:`lm_audit.models.load_model`, whose errors it raises."""
        where = (check_device_name(device), dtype_name(dtype), str(device_map))
        named = (parse_spec(spec).text, *where, str(trust_remote_code))
        source = find_source(spec, trust_remote_code=trust_remote_code)
        key = (*named, *source.state)  # files that were edited since are another model
        if key in self._models:
            self._models.move_to_end(key)
            return self._models[key]
        wanted = key[2] if key[2] != "auto" else "float32" if key[1] in ("auto", "cpu") else source.checkpoint.dtype
        self._make_room(source.checkpoint.bytes_in(wanted))
        model = load_model(spec, device=device, dtype=dtype, trust_remote_code=trust_remote_code, device_map=device_map)
        self.loads += 1
        self._models[key] = model
        return model

    @property
    def held_bytes(self) -> int:
        """Bytes of the weights of all models held."""
        return sum(weight_bytes(model.module) for model in self._models.values())

    def clear(self) -> None:
        """Let every model go."""
        self._models.clear()
        _release()

    def _make_room(self, needed: int) -> None:
        """Models leave before the next one comes, so that the budget holds at its peak too."""
        while self._models and self.held_bytes + needed > self.budget_bytes:
            self._models.popitem(last=False)
            _release()


def weight_bytes(module: CausalModule) -> int:
    """Bytes of a module's parameters and buffers, tied ones once."""
    tensors = {t.data_ptr(): t.nbytes for t in [*module.parameters(), *module.buffers()]}
    return sum(tensors.values())


def _release() -> None:
    """Hand freed memory back to the device; a model sits in reference cycles, which only the collector breaks."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
