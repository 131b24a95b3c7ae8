"""Models behind servers in a run: how they are asked, and what asking them has shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.models.capabilities import EVERYTHING, Offers
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.models.endpoint.facts import EndpointFacts
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.plugin.options.model_choice import ModelChoice

if TYPE_CHECKING:
    from lm_audit.plugin.record.audit_session import AuditSession

DEVICE = "endpoint"
"""What stands in place of a device where the model is behind a server."""

TRAFFIC_PROPERTY = "lm_audit_traffic"
"""What ``-v`` tells of a case's requests, as it ends."""

ANSWERS = "answers"
"""The folder of a run that holds its answers."""


def reused(config: pytest.Config, reports: Path) -> tuple[Path, ...]:
    """The folders of answers that ``--reuse-answers`` names; ``UsageError`` for a run that is none or has none."""
    from lm_audit.runstore.named import find_run

    folders = []
    for named in config.getoption("lm_audit_reuse_answers") or ():
        folder = find_run(named, reports) / ANSWERS
        if not folder.is_dir():
            raise UsageError(f"--reuse-answers {named}: that run keeps no answers; it asked no server")
        folders.append(folder)
    return tuple(folders)


def settings_for(session: AuditSession, model: ModelChoice, workers: int = 1) -> EndpointSettings:
    """How this process talks to a model's server; requests in flight are shared out between the workers."""
    options = session.options.endpoint
    return EndpointSettings(
        concurrency=max(1, options.concurrency // max(1, workers)),
        timeout_s=options.timeout_s,
        chat=session.options.chat != "off",
        allow_insecure=options.allow_insecure,
        tokenizer=options.tokenizers.get(model.name),
        budget=options.budget,
        folder=session.folder.path / ANSWERS,
        reuse=session.reused,
        writer=session.worker,
    )


def ask_servers(session: AuditSession) -> None:
    """Ask every server that ``--model`` names what it can do; raises what cannot be used, before any case runs."""
    for model in session.options.models:
        facts_of(session, model)


def facts_of(session: AuditSession, model: ModelChoice) -> EndpointFacts | None:
    """What a model's server can do, asked once a run; ``None`` for a model on this machine."""
    if not is_endpoint(model.spec):
        return None
    if model.name not in session.facts:
        from lm_audit.models.endpoint.connecting import find_facts

        session.facts[model.name] = find_facts(model.spec, settings_for(session, model))
    return session.facts[model.name]


def offers_of(session: AuditSession, model: ModelChoice) -> Offers:
    """What a model can be asked for."""
    facts = facts_of(session, model)
    return EVERYTHING if facts is None else facts.offers


def spent(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What a case's requests were and cost: counts are those since ``before``."""
    return {
        name: value - before.get(name, 0) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in after.items()
    }
