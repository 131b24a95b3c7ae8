"""What is known of a case's model before its weights load, and what is held against it: its window, its tokenizer."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from lm_audit.errors import ContextError, ModelError, beyond_context
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.models.files.json_file import one_line
from lm_audit.plugin.models.endpoints import facts_of
from lm_audit.plugin.options.model_choice import ModelChoice

if TYPE_CHECKING:
    from lm_audit.models.text.tokenizer import Tokenizer
    from lm_audit.plugin.audit_cases.selection import Selection
    from lm_audit.plugin.record.audit_session import AuditSession


def known_context(session: AuditSession, model: ModelChoice) -> int | None:
    """Tokens that a model reads at most, as its files or its server say; ``None`` where nobody says."""
    facts = facts_of(session, model)
    if facts is not None:
        return facts.context
    from lm_audit.models.files.stated_context import stated_context  # imports no torch

    return stated_context(model.spec, trust_remote_code=session.options.trust_remote_code)


@cache
def check_libraries() -> None:
    """``ModelError`` where torch or transformers cannot be imported.

    Of a broken installation, or by a variable that they read as they are (``TORCH_LOGS``).
    """
    try:
        import_module("torch")
        import_module("transformers")
    except Exception as error:  # whatever happens in a library's own code
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise ModelError(f"torch and transformers cannot be imported, and load no model: {reason}") from error


def check_case(session: AuditSession, selection: Selection, tokenizer: Tokenizer) -> None:
    """The case's own check with the tokenizer alone, and the texts that it names held against the model's window.

    Raises what the check raises, ``pytest.skip`` included, and ``ContextError`` for the first text that is too long.
    Of a served model the server counts tokens, and says what is too long.
    """
    source, case, model = selection.source, selection.case, selection.model
    if source is None or source.preflight is None or case is None or model is None:
        return
    read = source.preflight(case, tokenizer, session.options)
    if read is None or is_endpoint(model.spec) or (window := known_context(session, model)) is None:
        return
    for name, given in read:
        tokens = given if isinstance(given, int) else _count(given, tokenizer, window)
        if tokens > window:
            advice = "shorten it, leave it out, or ask a model that reads more"
            raise ContextError(beyond_context(name, tokens, f"model {model.name}", window, advice))


def _count(text: str, tokenizer: Tokenizer, window: int) -> int:
    """The tokens of a text; of its beginning alone where that is beyond the window: a book takes half a minute."""
    begin = text[: _LOOKED_AT * window]
    found = len(tokenizer(begin).input_ids)
    # Up to where it was cut, the whole text may have a few tokens fewer.
    return found if len(begin) == len(text) or found > window + _LOOKED_AT else len(tokenizer(text).input_ids)


_LOOKED_AT = 16
"""Characters that are looked at for each token of a window."""
