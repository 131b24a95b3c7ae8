"""What is known of a case's model before it loads, and the case's own check of it; nothing is fetched or asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest

from lm_audit.errors import HarnessError
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.models.files.hub import is_settled
from lm_audit.models.loading.spec import parse_spec
from lm_audit.plugin.audit_cases.selection import Selection
from lm_audit.plugin.models.known import check_case, known_context

if TYPE_CHECKING:
    from lm_audit.models.text.tokenizer import Tokenizer
    from lm_audit.plugin.options.run_options import RunOptions
    from lm_audit.plugin.record.audit_session import AuditSession


@dataclass(frozen=True)
class KnownModel:
    """The options of a run beside what is known of one case's model: what a plan is made from."""

    session: AuditSession
    selection: Selection

    @property
    def options(self) -> RunOptions:
        """The run's."""
        return self.session.options

    @property
    def size(self) -> str:
        """``--size``."""
        return self.options.size

    @property
    def seed(self) -> int:
        """``--seed``."""
        return self.options.seed

    @property
    def thinking_tokens(self) -> int:
        """``--thinking-tokens``."""
        return self.options.thinking_tokens

    def items(self, of_size: int | None, own: int | None = None) -> int | None:
        """How many items of a set are measured: by the audit's own option, ``--limit`` or the size."""
        return self.options.items(of_size, own)

    def option(self, name: str) -> Any:
        """An audit's own option."""
        return self.options.option(name)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The model's tokenizer, None where it is not on this machine or the case has no model."""
        model = self.selection.model
        if model is None or is_endpoint(model.spec):
            return None
        return _tokenizer(model.spec, self.options.trust_remote_code)

    @property
    def context(self) -> int | None:
        """Tokens that the model reads at most, None where nobody says."""
        model = self.selection.model
        return None if model is None else known_context(self.session, model)

    def skips(self) -> bool:
        """Whether the case's check with the tokenizer would skip it; ``HarnessError`` where it would refuse it."""
        source = self.selection.source
        if source is None or source.preflight is None or (tokenizer := self.tokenizer) is None:
            return False
        try:
            check_case(self.session, self.selection, tokenizer)
        except pytest.skip.Exception:
            return True
        return False


@lru_cache(maxsize=8)
def _tokenizer(spec: str, trust_remote_code: bool) -> Tokenizer | None:
    try:
        parsed = parse_spec(spec)
        if parsed.kind == "hub" and not is_settled(parsed):
            return None  # Its run will fetch it.
        from lm_audit.models import load_tokenizer

        return load_tokenizer(spec, trust_remote_code=trust_remote_code)
    except (HarnessError, OSError):
        return None
