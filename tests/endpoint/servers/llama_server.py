"""llama.cpp's own server on the embedded model, on a free loopback port: one thread, two slots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lm_audit.models.toy.smollm2 import find_smollm2

ALIAS = "smollm2-served"


@contextmanager
def llama_server(context: int = 2048, slots: int = 2) -> Iterator[str]:
    """The base URL of a running server, whose requests may have ``context`` tokens."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(find_smollm2())
    parameters.model_alias = {ALIAS}
    parameters.port = 0  # The system gives it a free one, which no other process can take in between.
    parameters.n_ctx = context * slots
    parameters.n_parallel = slots
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
