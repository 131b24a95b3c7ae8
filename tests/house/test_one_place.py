"""What is asked of others is asked in one place: two that ask the same come to answer differently."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.test_layers import MODULES

ASKED = {
    "apply_chat_template": {"lm_audit.models.text.chat"},
    "return_offsets_mapping=": {"lm_audit.models.text.token_spans"},
    "HF_HUB_CACHE": {"lm_audit.models.files.hub"},
    "HF_HOME": {"lm_audit.models.files.hub"},
    "LM_AUDIT_CACHE": {"lm_audit.models.files.disk_cache"},
    "max_position_embeddings": {"lm_audit.models.context"},
    "MemAvailable:": {"lm_audit.shared.free_memory"},
    "SC_AVPHYS_PAGES": set[str](),
    "mem_get_info": {"lm_audit.models.scoring.limits"},
    "sched_getaffinity": {"lm_audit.plugin.parallel.threads"},
}
"""An attribute that is read, a keyword that is given (with ``=``) or a text that is used, and the modules that do."""
OTHERS = {
    # Formats are read, mended or made there, toys are built, and a served model's tokenizer answers instead of asking.
    "max_position_embeddings": ("lm_audit.models.files.", "lm_audit.models.toy.", ".controls.", ".byte_tokenizer"),
    "return_offsets_mapping=": ("lm_audit.models.endpoint.tokens.",),
}


def used(module: str) -> Iterator[str]:
    """Attributes that a module reads, keywords that it gives (with ``=``), and its texts of one word."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        if isinstance(node, ast.Call):
            yield from (f"{keyword.arg}=" for keyword in node.keywords)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield node.value


@pytest.fixture(scope="module")
def uses() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {asked: set() for asked in ASKED}
    for module in MODULES:
        for name in {*used(module)} & found.keys():
            found[name].add(module)
    return found


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_of_others_is_asked_in_one_place(uses: dict[str, set[str]], asked: str) -> None:
    places = {one for one in uses[asked] if not any(part in one for part in OTHERS.get(asked, ()))}
    assert places == ASKED[asked]
