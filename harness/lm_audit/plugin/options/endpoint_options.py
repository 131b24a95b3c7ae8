"""The options that say how models behind servers are talked to."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from lm_audit.errors import UsageError
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.plugin.options.model_choice import ModelChoice
from lm_audit.plugin.options.naming import declare


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
