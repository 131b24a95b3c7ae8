"""Whether a model is on this machine, told from its files alone: without torch, without the network."""

from __future__ import annotations

from lm_audit.errors import HarnessError
from lm_audit.models.files.hub import cached_snapshot, hub_cache_dir, is_settled
from lm_audit.models.loading.spec import parse_spec


def absence(spec: str) -> str | None:
    """Why the model of ``spec`` cannot be loaded from this machine's own files, None where it can.

    A hub id that is not in the cache counts as absent though it could be fetched.
    """
    from lm_audit.models.files.source import check_spec

    try:
        parsed = parse_spec(spec)
        if parsed.kind == "hub" and (cached_snapshot(parsed.repo or "", parsed.revision) is None):
            return f"model {parsed.text} is not in the hub cache {hub_cache_dir()}; fetch it there first"
        if parsed.kind == "hub" and not is_settled(parsed):
            return f"model {parsed.text} is incomplete in the hub cache {hub_cache_dir()}; fetch it there anew"
        check_spec(parsed)
    except HarnessError as error:
        text = str(error)
        # Code of its own needs the user's consent, which is asked for where the model loads; the files are here.
        return None if "trust-remote-code" in text or "trust_remote_code" in text else text
    return None
