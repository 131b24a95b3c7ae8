"""What a session measures once and several cases show a part of: "measure once, slice in cases"."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from lm_audit.errors import StoreError
from lm_audit.models.files.disk_cache import write_once
from lm_audit.shared.answers import shared_answers

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class FileForm(Generic[Measured]):
    """How a measurement is kept in a file, and read back equal."""

    write: Callable[[Measured, Path], None]
    read: Callable[[Path], Measured]


class MeasuredOnce:
    """Remembers by model and by what was measured. ``folder`` (of this session) is one for all workers of a machine."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._known: dict[tuple[Hashable, ...], object] = {}

    def __call__(
        self,
        model: LanguageModel | None,
        what: Hashable,
        measure: Callable[[], Measured],
        *,
        form: FileForm[Measured] | None = None,
    ) -> Measured:
        """What ``measure()`` gave the first time that this model was asked for ``what``.

        ``what`` names all that the measurement hangs on beside the model: audit, data, settings, seed. Each process
        measures for itself, unless ``form`` says how a file keeps it: then one worker measures and the others wait for
        it at a lock; ``what`` must then be told apart by its ``repr``. What ``measure`` raises is raised to whoever
        asked, and the next one tries again.
        """
        key = (_identity(model), what)
        if key not in self._known:
            with shared_answers(repr(key)):
                self._known[key] = measure() if form is None else self._in_file(key, measure, form)
        return cast(Measured, self._known[key])

    def _in_file(
        self, key: tuple[Hashable, ...], measure: Callable[[], Measured], form: FileForm[Measured]
    ) -> Measured:
        name = hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        measured: list[Measured] = []

        def write(draft: Path) -> None:
            measured.append(measure())
            form.write(measured[0], draft)

        try:
            return form.read(write_once(self._folder / name, write))
        except (OSError, StoreError):
            # The file saves the others their time: where the disk refuses it, what was measured stands without.
            if not measured:
                raise
            return measured[0]


def _identity(model: LanguageModel | None) -> Any:
    """What tells apart two models' numbers: a thought's room changes answers, a template's arguments change prompts."""
    if model is None:
        return None
    return (model.fingerprint, str(model.device), str(model.dtype), model.chat_settings.key)
