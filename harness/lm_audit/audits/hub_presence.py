"""What is known of a data set of the hub before it is read: whether it lies on this machine, whether the hub has it."""

from __future__ import annotations

import os
from importlib.util import find_spec

from lm_audit.audits.hub_network import ask, silent_errors
from lm_audit.audits.hub_rows import HubSet
from lm_audit.errors import DataError, UsageError
from lm_audit.models.files.hub import hub_home, is_offline, repo_folder
from lm_audit.shared.home import from_home
from lm_audit.shared.textfiles import is_folder


def is_settled(source: HubSet) -> bool:
    """Whether reading the set needs no download: it is cached, or the network is forbidden and reading fails now."""
    return is_offline("HF_DATASETS_OFFLINE") or _prepared(source) or _downloaded(source)


def refuse_absent(source: HubSet) -> None:
    """``DataError`` where the hub says that it has no such set or revision, or does not hand it out.

    Raises ``UsageError`` where the package ``datasets`` is not installed. Reads none of the set's rows. A hub that does
    not answer, or not as the hub does (a proxy's page), is left to the case that reads the set.
    """
    if find_spec("datasets") is None:
        raise UsageError(f"{str(source)!r} is no file here; reading it from the hub needs the package `datasets`")
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        ask(source.repo, source.revision)
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        if status in (401, 403, 404, 410):
            reason = {401: "is not there, or not for everybody", 403: "is not handed out", 404: "is not there"}
            raise DataError(
                f"{reason.get(status, 'is gone')}, says the hub (status {status}); a set is named"
                " OWNER/NAME@REVISION:CONFIG:SPLIT",
                file=str(source),
            ) from error
    except HFValidationError as error:
        raise DataError(f"is no name that a set of the hub can have: {error}", file=str(source)) from error
    except silent_errors():
        return


def _prepared(source: HubSet) -> bool:
    """Whether ``datasets`` keeps the set's tables; its folders are named in another case, with underscores."""
    folder = from_home(os.environ.get("HF_DATASETS_CACHE") or hub_home() / "datasets")
    owner, name = source.repo.split("/")
    try:
        return any(_plain(path.name) == _plain(owner + name) for path in folder.iterdir() if path.is_dir())
    except OSError:
        return False


def _downloaded(source: HubSet) -> bool:
    return is_folder(repo_folder(source.repo, "datasets") / "snapshots")


def _plain(text: str) -> str:
    return text.replace("_", "").casefold()
