"""From a spec to a model in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.models.files.config_file import embeddings_of
from lm_audit.models.files.source import Spec, find_source
from lm_audit.models.loading.devices import check_device_name, dtype_name, resolve_device, resolve_dtype
from lm_audit.models.loading.placement import DeviceMap, check_device_map
from lm_audit.models.loading.spec import parse_spec
from lm_audit.models.loading.told import hearing

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


def load_model(
    spec: Spec,
    *,
    device: object = "auto",
    dtype: object = "auto",
    trust_remote_code: bool = False,
    device_map: DeviceMap = None,
    endpoint: EndpointSettings | None = None,
) -> LanguageModel:
    """The model that ``spec`` names, ready to answer on ``device`` in ``dtype``.

    ``device``: auto (cuda, else mps, else cpu), cpu, cuda, cuda:N, mps. ``dtype``: auto (the checkpoint's on cuda and
    mps, float32 on CPU), float32, bfloat16, float16, float64. Weights on CPU are memory-mapped and shared by processes.
    ``device_map`` spreads one model over several devices (:mod:`lm_audit.models.loading.placement`), the same model.
    Raises ``UsageError`` for an argument that cannot be used and ``ModelError`` for a checkpoint that cannot, both
    before weights are read, and ``ModelError`` where the weights are not those of the config, hold NaN, or belong to a
    model that does not read from left to right. No network unless a hub id is not in the cache, or ``spec`` names a
    server, which is asked what it can do and talked to as ``endpoint`` says; device and dtype are the server's then.
    """
    if (parsed := parse_spec(spec)).kind == "endpoint":
        from lm_audit.models.endpoint.connecting import connect

        return connect(parsed, endpoint or EndpointSettings())
    check_device_name(device)
    dtype_name(dtype)
    check_device_map(device_map, device)
    source = find_source(spec, trust_remote_code=trust_remote_code)
    target = resolve_device(device)
    name = resolve_dtype(dtype, target, source.checkpoint.dtype)
    from lm_audit.models.checks.vocabulary_fit import check_vocabulary
    from lm_audit.models.loading.module import load_module, load_tokenizer_from, wrap

    with hearing() as heard:
        tokenizer = load_tokenizer_from(source.tokenizer_folder, trust_remote_code)
        rows = embeddings_of(source.checkpoint.config)
        if rows is not None and source.adapter is None:  # an adapter may add tokens
            check_vocabulary(tokenizer, rows, source.spec.text)
        module = load_module(
            source.checkpoint, source.adapter, source.spec.text, target, name, trust_remote_code, device_map
        )
        model = wrap(source, module, tokenizer)
    model.told = tuple(heard)
    return model
