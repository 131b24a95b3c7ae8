"""Models behind servers in a run: the options that say how they are talked to, and what asking them has shown."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.errors import UsageError
from lm_audit.models.capabilities import EVERYTHING, Offers
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.models.endpoint.facts import EndpointFacts
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.plugin.options.model_choice import ModelChoice
from lm_audit.plugin.options.naming import declare

if TYPE_CHECKING:
    from lm_audit.plugin.record.audit_session import AuditSession

DEVICE = "endpoint"
"""What stands in place of a device where the model is behind a server."""

TRAFFIC_PROPERTY = "lm_audit_traffic"
"""What ``-v`` tells of a case's requests, as it ends."""

ANSWERS = "answers"
"""The folder of a run that holds its answers."""


@dataclass(frozen=True)
class EndpointOptions:
    """What the options say of servers; ``tokenizers`` maps names of models to specs of local tokenizers."""

    concurrency: int = EndpointSettings.concurrency
    timeout_s: float = EndpointSettings.timeout_s
    allow_insecure: bool = False
    tokenizers: Mapping[str, str] = field(default_factory=dict)
    budget: int | None = None


def declare_options(group: pytest.OptionGroup) -> None:
    """Register the options."""
    declare(
        group,
        "--concurrency",
        dest="lm_audit_concurrency",
        type=_positive,
        metavar="N",
        help=f"requests in flight at a server, of all workers together (default {EndpointSettings.concurrency})",
    )
    declare(
        group,
        "--request-timeout",
        dest="lm_audit_request_timeout",
        type=_positive,
        metavar="S",
        help=f"seconds after which a request counts as lost and is sent again (default {EndpointSettings.timeout_s:g})",
    )
    declare(
        group,
        "--max-tokens-spent",
        dest="lm_audit_max_tokens_spent",
        type=_positive,
        metavar="N",
        help="tokens that a run may cost at servers, prompts and answers; cases that find none left end as 'budget'",
    )
    declare(
        group,
        "--tokenizer",
        dest="lm_audit_tokenizer",
        action="append",
        metavar="NAME=SPEC",
        help="the model on this machine whose tokenizer the served model NAME has; repeatable",
    )
    declare(
        group,
        "--allow-insecure",
        dest="lm_audit_allow_insecure",
        action="store_true",
        help="talk plain http to servers on other machines",
    )
    declare(
        group,
        "--reuse-answers",
        dest="lm_audit_reuse_answers",
        action="append",
        metavar="RUN",
        help="take answers that an earlier run got from the same server to the same request; repeatable",
    )


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**15):
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def endpoint_options(config: pytest.Config, models: Iterable[ModelChoice]) -> EndpointOptions:
    """The options of this call; ``UsageError`` for a tokenizer of a model that is not named or not served."""
    served = [model.name for model in models if is_endpoint(model.spec)]
    tokenizers: dict[str, str] = {}
    for entry in config.getoption("lm_audit_tokenizer") or ():
        name, separator, spec = entry.partition("=")
        if not separator or not name or not spec:
            raise UsageError(f"--tokenizer {entry!r}: write --tokenizer NAME=SPEC, NAME as in --model NAME=openai:...")
        if name not in served:
            known = ", ".join(served) or "none"
            raise UsageError(f"--tokenizer {entry!r}: no served model is called {name!r} (served: {known})")
        if name in tokenizers:
            raise UsageError(f"--tokenizer {entry!r}: {name} has {tokenizers[name]!r} already")
        tokenizers[name] = spec
    return EndpointOptions(
        concurrency=config.getoption("lm_audit_concurrency") or EndpointOptions.concurrency,
        timeout_s=float(config.getoption("lm_audit_request_timeout") or EndpointOptions.timeout_s),
        allow_insecure=bool(config.getoption("lm_audit_allow_insecure")),
        tokenizers=tokenizers,
        budget=config.getoption("lm_audit_max_tokens_spent"),
    )


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
