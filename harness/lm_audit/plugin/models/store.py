"""Models and tokenizers of this process: kept by a byte budget, a failure to load remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lm_audit.errors import HarnessError
from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.plugin.audit_cases.selection import Selection
from lm_audit.plugin.models.endpoints import facts_of, settings_for
from lm_audit.plugin.models.known import check_case, check_libraries
from lm_audit.plugin.options.environment import named_budget
from lm_audit.plugin.options.model_choice import ModelChoice
from lm_audit.plugin.parallel.workers import GIB
from lm_audit.shared.free_memory import available_memory

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel, ModelCache
    from lm_audit.plugin.record.audit_session import AuditSession


def budget_bytes(workers: int) -> int:
    """Bytes of weights that one process keeps loaded."""
    named = named_budget()
    return (available_memory() or 16 * GIB) // (2 * max(1, workers)) if named is None else int(named * GIB)


class ModelStore:
    """Gives the model of a selection, from a cache."""

    def __init__(self, session: AuditSession, workers: int = 1):
        self._session = session
        self._options = session.options
        self._served: dict[str, LanguageModel] = {}
        self._workers = workers
        self._cache: ModelCache | None = None
        self._tokenizers: dict[str, Any] = {}
        self._failures: dict[tuple[str, str], HarnessError] = {}

    def preflight(self, selection: Selection) -> None:
        """Run the case's check with the tokenizer alone, before weights load."""
        if selection.source is None or selection.source.preflight is None or selection.model is None:
            return
        if is_endpoint(selection.model.spec):
            check_case(self._session, selection, self._connected(selection.model).tokenizer)
            return
        spec = selection.model.spec
        if spec not in self._tokenizers:
            check_libraries()
            from lm_audit.models import load_tokenizer

            self._tokenizers[spec] = load_tokenizer(spec, trust_remote_code=self._options.trust_remote_code)
        check_case(self._session, selection, self._tokenizers[spec])

    def model(self, selection: Selection) -> LanguageModel:
        """The loaded model; the same error again, without loading, where it failed before."""
        assert selection.model is not None and selection.device is not None
        key = (selection.model.spec, selection.device)
        if key in self._failures:
            raise self._failures[key]
        try:
            if is_endpoint(selection.model.spec):
                return self._connected(selection.model)
            check_libraries()
            model = self._models().get(
                selection.model.spec,
                device=selection.device,
                dtype=self._options.dtype,
                trust_remote_code=self._options.trust_remote_code,
                device_map=self._options.device_map,
            )
            model.batch_tokens = self._options.batch_tokens
            model.packed_weights = self._options.packed_weights
            model.chat_settings = self._options.chat_settings
            return model
        except HarnessError as error:
            self._failures[key] = error
            raise

    def _connected(self, choice: ModelChoice) -> LanguageModel:
        """A served model; there is nothing to load, and nothing that would have to leave for another."""
        if choice.name not in self._served:
            from lm_audit.models.endpoint.connecting import connect

            settings = settings_for(self._session, choice, self._workers)
            model = connect(choice.spec, settings, facts_of(self._session, choice))
            model.chat_settings = self._options.chat_settings
            self._served[choice.name] = model
        return self._served[choice.name]

    def _models(self) -> ModelCache:
        if self._cache is None:
            from lm_audit.models import ModelCache

            self._cache = ModelCache(budget_bytes(self._workers))
        return self._cache
