"""A server for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.endpoint.servers.llama_server import ALIAS, llama_server


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The spec of the embedded model behind llama.cpp's server."""
    with llama_server() as url:
        yield f"openai:{ALIAS}@{url}"
