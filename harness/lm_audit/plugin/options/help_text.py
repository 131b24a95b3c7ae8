"""``lm-audit run --help``: the options of audits, those of single audits by audit, and where pytest's own are told."""

from __future__ import annotations

import argparse

from lm_audit.plugin.compat import with_options
from lm_audit.plugin.options.audit_options import audit_names, audit_options, option_owners
from lm_audit.plugin.options.naming import declared

_USAGE = "lm-audit run [-m AUDITS] [-k WORDS] [--model SPEC] [options] [FILE or case id ...]"
_DESCRIPTION = """Runs the audits that are installed, or those of the files and case ids that are named. It is pytest,
whose options all work here: -m picks audits by marker (-m "bias and not control"), -k picks cases by words of their
ids, -n N runs N processes, -x stops at the first failure, --lf runs again what failed, -v shows findings as they
come."""
_EPILOG = """pytest's own options: pytest --help. What there is to run: lm-audit list. What can be decided at this size:
lm-audit plan, with the same options."""


def help_text() -> str:
    """The whole text."""
    with with_options(["-p", "lm_audit.plugin"]):
        options = declared()
    parser = argparse.ArgumentParser(
        prog="lm-audit run", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG, add_help=False, allow_abbrev=False
    )
    owners = {option.flag: sorted(option_owners()[option.name]) for option in audit_options()}
    general = parser.add_argument_group("options of every audit")
    single = {name: parser.add_argument_group(f"options of {name}") for name in audit_names()}
    for option in options:
        audits = owners.get(option.flag, [])
        group = single[audits[0]] if len(audits) == 1 else general
        group.add_argument(option.flag, **option.arguments)
    return parser.format_help()
