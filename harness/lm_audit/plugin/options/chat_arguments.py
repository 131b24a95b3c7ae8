"""``--chat-args`` are held against the chat templates of the run's models before any case runs."""

from __future__ import annotations

from collections.abc import Iterable

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.models.files.hub import is_settled
from lm_audit.models.loading.spec import parse_spec
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.plugin.options.model_choice import ModelChoice
from lm_audit.plugin.options.run_options import RunOptions


def refuse_unread_arguments(options: RunOptions) -> None:
    """``UsageError`` for an argument that the template of a model never reads, or where no model has a template.

    A model of the hub that is not on this machine yet is checked when it is loaded; a served one has its template on
    the server (:func:`unknown_templates`). A model without a template beside others that have one is asked in bare
    text, as without arguments. What loading would refuse is left to loading.
    """
    if not options.chat_args:
        return
    from lm_audit.models.text.chat import ChatTemplate, template_source

    bare: list[str] = []
    local = [model for model in options.models if not is_endpoint(model.spec)]
    for model in local:
        tokenizer = _tokenizer(model, options)
        if tokenizer is None:
            continue
        if template_source(tokenizer) is None:
            bare.append(model.name)
        else:
            ChatTemplate(tokenizer, options.chat_args, name=model.name)
    if bare and len(bare) == len(options.models):
        first = next(iter(options.chat_args))
        raise UsageError(
            f"--chat-args {first}: no model of this run has a chat template ({', '.join(bare)}), so it would change "
            "nothing; leave it out"
        )


def _tokenizer(model: ModelChoice, options: RunOptions) -> Tokenizer | None:
    from lm_audit.models import load_tokenizer

    try:
        spec = parse_spec(model.spec)
        if spec.kind == "hub" and not is_settled(spec):
            return None
        return load_tokenizer(spec, trust_remote_code=options.trust_remote_code)
    except ModelError:
        return None


def unknown_templates(options: RunOptions) -> Iterable[str]:
    """One line for each served model: its template is on the server, and nobody here knows what it reads."""
    if not options.chat_args:
        return
    names = ", ".join(options.chat_args)
    for model in options.models:
        if is_endpoint(model.spec):
            yield (
                f"--chat-args {names}: the chat template of {model.name} is its server's; whether it reads them is not "
                "known here, and a misspelt one changes nothing"
            )
