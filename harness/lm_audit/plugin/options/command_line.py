"""The plugin's command-line options."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.audits.option import AuditOption
from lm_audit.models.loading.placement import PLACEMENTS
from lm_audit.models.text.chat import CHAT_MODES
from lm_audit.plugin.options.audit_options import audit_options
from lm_audit.plugin.options.endpoint_options import declare_options
from lm_audit.plugin.options.naming import declare
from lm_audit.plugin.options.run_options import DEFAULT_MODEL, SIZES, THINKING_TOKENS
from lm_audit.shared.number_checks import real_number, seed_number, whole_number


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options of every audit run, then those that single audits declare."""
    group = parser.getgroup("lm-audit", "audits of language models")
    _what_to_audit(group)
    _how_to_ask(group)
    declare_options(group)
    _verdicts(group)
    _run_store(group)
    own = parser.getgroup("lm-audit-audits", "options of single audits")
    for option in audit_options():
        declare(own, option.flag, **_arguments(option))


def _what_to_audit(group: pytest.OptionGroup) -> None:
    declare(
        group,
        "--model",
        dest="lm_audit_model",
        action="append",
        metavar="[NAME=]SPEC",
        help="model to audit: hub id, folder, .gguf file, smollm2, tiny or openai:MODEL@URL; repeatable "
        f"(default {DEFAULT_MODEL})",
    )
    declare(
        group,
        "--device",
        dest="lm_audit_device",
        action="append",
        metavar="D",
        help="device to run on: cpu, cuda, mps; repeatable, each case then has a variant a device (default: the best)",
    )
    declare(
        group,
        "--require-device",
        dest="lm_audit_require_device",
        action="append",
        metavar="D",
        help="fail, rather than skip, cases whose device D is absent",
    )
    declare(group, "--size", dest="lm_audit_size", choices=SIZES, help="how much to measure (default smoke)")
    declare(
        group,
        "--data",
        dest="lm_audit_data",
        action="append",
        metavar="NAME=PATH",
        help="where a public data set lies that is not shipped; repeatable",
    )
    declare(
        group,
        "--limit",
        dest="lm_audit_limit",
        type=whole_number(1, 10**9),
        metavar="N",
        help="so many items of each set, drawn by the seed, in place of the size's number; controls keep theirs",
    )
    declare(
        group,
        "--seed",
        dest="lm_audit_seed",
        type=seed_number(),
        metavar="N",
        help="seed of everything random (default 0)",
    )
    declare(
        group,
        "--device-map",
        dest="lm_audit_device_map",
        choices=PLACEMENTS,
        help="spread one model over all GPUs of this machine, as transformers and accelerate do",
    )
    declare(
        group,
        "--batch-tokens",
        dest="lm_audit_batch_tokens",
        type=whole_number(1, 10**9),
        metavar="N",
        help="read at most N tokens in a pass of several texts (default: what suits the device); results are the same",
    )
    declare(
        group,
        "--packed-weights",
        dest="lm_audit_packed_weights",
        choices=("on", "off"),
        help="lay weights out once more for products on a CPU, which takes their memory twice (default: where that "
        "pays and memory is free); results are the same",
    )
    declare(group, "--dtype", dest="lm_audit_dtype", metavar="T", help="dtype of the weights (default auto)")
    declare(
        group,
        "--trust-remote-code",
        dest="lm_audit_trust_remote_code",
        action="store_true",
        help="let a checkpoint run code that it brings along",
    )


def _how_to_ask(group: pytest.OptionGroup) -> None:
    declare(
        group,
        "--chat",
        dest="lm_audit_chat",
        choices=CHAT_MODES,
        help="prompts in the model's chat template: in every audit (on), in none (off), or as each audit's page says "
        "(auto, default)",
    )
    declare(
        group,
        "--chat-args",
        dest="lm_audit_chat_args",
        action="append",
        metavar="KEY=VALUE",
        help="argument of the chat template, its value as JSON (else text), as enable_thinking=false; repeatable",
    )
    declare(
        group,
        "--thinking-tokens",
        dest="lm_audit_thinking_tokens",
        type=whole_number(0, 10**9),
        metavar="N",
        help="a thought of so many tokens is closed and the answer asked for; 0: no thought "
        f"(default {THINKING_TOKENS})",
    )


def _verdicts(group: pytest.OptionGroup) -> None:
    declare(group, "--gates", dest="lm_audit_gates", metavar="FILE", help="limits on metrics (gates.toml)")
    declare(
        group,
        "--undecided",
        dest="lm_audit_undecided",
        choices=("pass", "fail"),
        help="what a gate does whose interval straddles its limit (default pass)",
    )
    declare(
        group,
        "--report-only",
        dest="lm_audit_report_only",
        action="store_true",
        help="show missed gates without failing",
    )


def _run_store(group: pytest.OptionGroup) -> None:
    declare(
        group,
        "--reports",
        dest="lm_audit_reports",
        metavar="DIR",
        help="where runs are kept (default reports/ of the rootdir)",
    )
    declare(
        group,
        "--resume",
        dest="lm_audit_resume",
        metavar="RUN",
        help="go on with a run (id, folder or latest): what ended, its inputs unchanged, does not run again",
    )
    declare(
        group,
        "--case-timeout",
        dest="lm_audit_case_timeout",
        type=real_number(above=0, most=10**8, unit="seconds"),
        metavar="SECONDS",
        help="end a case that takes longer, report it, and go on; with -n also where it hangs in native code",
    )


def _arguments(option: AuditOption) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "dest": f"lm_audit_x_{option.name}",
        "action": option.action,
        # None is "not given": a resumed run has its own value then, which need not be the default.
        "default": False if option.action == "store_true" else None,
        "help": option.help,
    }
    if option.action != "store_true":
        arguments["type"] = option.type
        if option.choices is not None:
            arguments["choices"] = option.choices
        else:
            arguments["metavar"] = option.metavar
    return arguments
