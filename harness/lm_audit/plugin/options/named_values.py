"""The values of options that name something on the disk: public sets, the files and models of single audits."""

from __future__ import annotations

from collections.abc import Iterator

from lm_audit.plugin.options.audit_options import audit_options
from lm_audit.plugin.options.run_options import RunOptions


def named_values(options: RunOptions) -> Iterator[tuple[str, str, bool]]:
    """The option, what it names (``PATH`` or ``NAME=PATH``, of models ``SPEC`` or ``NAME=SPEC``), whether it is data.

    Only options that say so name files (``AuditOption.names``): a word that happens to be a folder's name is none.
    """
    for name, where in options.data.items():
        yield f"--data {name}", where, True
    for option in audit_options():
        if option.names is None:
            continue
        for text in _texts(options.audit.get(option.name)):
            for part in text.split(",") if option.names == "models" else [text]:
                yield option.flag, part, option.names == "data"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, str) and value:
        yield value
