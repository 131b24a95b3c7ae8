"""Whether the hub answers about a data set, asked once: its libraries ask for a minute where there is no network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from lm_audit.models.files.hub import is_offline, patience
from lm_audit.models.files.json_file import one_line


def silent_errors() -> tuple[type[Exception], ...]:
    """What is raised where there is no network, none that answers in time, or an answer that is no JSON."""
    from huggingface_hub.errors import HfHubHTTPError

    # The library of HTTP differs between versions of huggingface_hub; its errors stand among the bases of this one.
    bases = (base for base in HfHubHTTPError.__mro__ if issubclass(base, Exception))
    unanswered = [base for base in bases if base.__name__ in ("HTTPError", "RequestException")]
    return (*unanswered, OSError, ValueError)


def ask(repo: str, revision: str | None) -> None:
    """Ask the hub for a data set, once; raises what its client raises, the :func:`silent_errors` among that."""
    from huggingface_hub import HfApi

    HfApi(endpoint=os.environ.get("HF_ENDPOINT")).dataset_info(repo, revision=revision, timeout=patience())


def why_unreached(repo: str, revision: str | None) -> str | None:
    """Why the hub does not answer about a data set; ``None`` where it does, or the network is forbidden anyway."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if is_offline("HF_DATASETS_OFFLINE"):
        return None
    try:
        ask(repo, revision)
    except (HfHubHTTPError, HFValidationError):  # it answers; what it says is said where the set is read
        return None
    except silent_errors() as error:
        return one_line(error) or type(error).__name__
    return None


@contextmanager
def without_network() -> Iterator[None]:
    """``datasets`` reads what it keeps on this machine and asks nobody while the block runs."""
    from datasets import config
    from huggingface_hub import constants

    places: tuple[Any, ...] = (config, constants)
    with ExitStack() as stack:
        for settings in places:
            stack.callback(setattr, settings, "HF_HUB_OFFLINE", settings.HF_HUB_OFFLINE)
            settings.HF_HUB_OFFLINE = True
        yield
