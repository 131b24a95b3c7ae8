"""Models and tokenizers of this process: loaded once, a failure to load remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError
from harness.plugin.run_options import RunOptions
from harness.plugin.selection import Selection

if TYPE_CHECKING:
    from harness.models import LanguageModel


class ModelStore:
    """Gives the model of a selection, from a cache."""

    def __init__(self, options: RunOptions):
        self._options = options
        self._models: dict[tuple[str, str], LanguageModel] = {}
        self._tokenizers: dict[str, Any] = {}
        self._failures: dict[tuple[str, str], HarnessError] = {}

    def preflight(self, selection: Selection) -> None:
        """Run the case's check with the tokenizer alone, before weights load."""
        source, case = selection.source, selection.case
        if source is None or source.preflight is None or case is None or selection.model is None:
            return
        spec = selection.model.spec
        if spec not in self._tokenizers:
            from harness.models import load_tokenizer

            self._tokenizers[spec] = load_tokenizer(spec)
        source.preflight(case, self._tokenizers[spec], self._options)

    def model(self, selection: Selection) -> LanguageModel:
        """The loaded model; the same error again, without loading, where it failed before."""
        assert selection.model is not None and selection.device is not None
        key = (selection.model.spec, selection.device)
        if key in self._failures:
            raise self._failures[key]
        if key not in self._models:
            from harness.models import load_model

            try:
                self._models[key] = load_model(
                    selection.model.spec,
                    device=selection.device,
                    dtype=self._options.dtype,
                    trust_remote_code=self._options.trust_remote_code,
                )
            except HarnessError as error:
                self._failures[key] = error
                raise
        return self._models[key]
