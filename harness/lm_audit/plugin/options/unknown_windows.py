"""Models of the hub of which nothing here says yet how long a text they read: told when cases are collected."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.plugin.audit_cases.selection import selection_of
from lm_audit.plugin.options.run_options import RunOptions


def unknown_windows(cases: Iterable[pytest.Item], options: RunOptions) -> list[str]:
    """One line for each model whose context is known only once it is fetched, where a case needs to know it."""
    from lm_audit.models.files.stated_context import stated_context  # imports no torch

    longest: dict[tuple[str, str], int] = {}
    for item in cases:
        selection = selection_of(item)
        case, model = (selection.case, selection.model) if selection else (None, None)
        if case is not None and case.tokens is not None and model is not None and _is_remote(model.spec):
            key = (model.name, model.spec)
            longest[key] = max(case.tokens, longest.get(key, 0))
    return [
        f"{name}: how long a text it reads is known when it has been fetched; cases of up to {tokens} tokens are "
        "planned, and those that are too long for it are told then"
        for (name, spec), tokens in longest.items()
        if stated_context(spec, trust_remote_code=options.trust_remote_code) is None
    ]


def _is_remote(spec: str) -> bool:
    """Whether the spec names a model of the hub that is not whole on this machine."""
    from lm_audit.models.files.hub import is_settled
    from lm_audit.models.loading.spec import parse_spec

    if is_endpoint(spec):
        return False
    parsed = parse_spec(spec)
    return parsed.kind == "hub" and not is_settled(parsed)
