"""Fingerprints: whether a case of an earlier session would measure the same today.

All without torch: a case is compared at collection, before anything is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from lm_audit.audits.registry import audit_packages
from lm_audit.models.loading.identity.spec_identity import file_state, folder_state, model_identity
from lm_audit.models.loading.identity.spec_identity import forget as forget_files
from lm_audit.plugin.audit_cases.markers import audit_of
from lm_audit.plugin.audit_cases.selection import Selection, selection_of
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.plugin.record.options_record import named_contents
from lm_audit.shared.code_version import code_version, sources
from lm_audit.shared.code_version import forget as forget_code
from lm_audit.shared.reached.opened import is_outside
from lm_audit.shared.textfiles import is_there, on_disk

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def case_fingerprint(item: pytest.Item, options: RunOptions) -> str:
    """A hash (32 hex digits) of case id, model files, parameters, options, input files and :func:`code_version`."""
    selection = selection_of(item) or Selection()
    audit = audit_of(item)
    model = selection.model
    served = model is not None and model.name in options.endpoint.tokenizers
    content = {
        "case": item.nodeid,
        "model": model_identity(selection.model.spec) if selection.model else None,
        "params": _plain(selection.case.params) if selection.case else {},
        "inputs": [file_state(path) for path in _paths(selection.case.params)] if selection.case else [],
        "size": options.size,
        **({} if options.limit is None else {"limit": options.limit}),
        "seed": options.seed,
        "dtype": options.dtype,
        **({"tokenizer": options.endpoint.tokenizers[model.name]} if model and served else {}),
        "chat": [options.chat, options.chat_settings.key],
        "data": {name: [where, file_state(str(on_disk(where).path))] for name, where in options.data.items()},
        "options": _plain(options.audit),
        "named": named_contents(options),
        "code": item_code(item),
        "fixtures": [folder_state(folder) for folder in _fixtures(item, audit)] if audit else None,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def item_code(item: pytest.Item) -> str:
    """The :func:`code_version` of a case: its eval file's, with the plugins that this call of pytest names."""
    return code_version(str(item.path), str(item.config.rootpath), named_plugins(item.config))


def item_sources(item: pytest.Item) -> frozenset[Path]:
    """The sources that a case's code version hashes beside the package."""
    return sources(item.path.resolve(), item.config.rootpath.resolve(), named_plugins(item.config))


def named_plugins(config: pytest.Config) -> tuple[Path, ...]:
    """The files of plugins that ``-p`` or ``PYTEST_PLUGINS`` names; of installed ones the version tells, if any."""
    names = [*(config.option.plugins or ()), *os.environ.get("PYTEST_PLUGINS", "").split(",")]
    modules = (sys.modules.get(name.strip()) for name in dict.fromkeys(names))
    files = [Path(module.__file__).resolve() for module in modules if module is not None and module.__file__]
    return tuple(path for path in files if not is_outside(path))


def _fixtures(item: pytest.Item, audit: str) -> list[str]:
    """Where an audit's data lie: ``fixtures/<audit>`` of the project, and ``fixtures`` in the package of the audit."""
    spec = find_spec(audit_packages()[audit]) if audit in audit_packages() else None
    own = [Path(place) / "fixtures" for place in (spec.submodule_search_locations or ())] if spec else []
    return [str(folder) for folder in (item.config.rootpath / "fixtures" / audit, *own)]


def forget() -> None:
    """Look at files anew: they may have changed since an earlier session of this process."""
    forget_code()
    forget_files()


def _plain(values: Mapping[str, object]) -> dict[str, str]:
    """Parameters as text; an address in memory says nothing about a value."""
    return {name: _ADDRESS.sub("", repr(value)) for name, value in values.items()}


def _paths(values: Mapping[str, object]) -> list[str]:
    """The files and folders that parameters name, in lists and mappings too."""
    return sorted({str(on_disk(text).path) for text in _texts(values) if text and is_there(on_disk(text).path)})


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str | os.PathLike):
        yield str(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part)
