"""Keys and passwords by the look of their files: those do not travel, since every node keeps a copy of what does."""

from __future__ import annotations

import re
from pathlib import Path

from lm_audit.errors import UsageError

_NAMES = re.compile(
    r"\.env(\..*)?|\.?netrc|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|\.pgpass|kubeconfig"
    r"|id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)"
    r"|(application_default_)?credentials(\.(json|toml|ya?ml|ini|csv))?|service[-_]?account.*\.json"
    r"|client_secret.*\.json|secrets?\.(toml|ya?ml|ini|env)",
    re.IGNORECASE,
)
_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud"})
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_HEAD = 4096


def what_secret(path: Path) -> str | None:
    """Why a file looks like a secret, None where it does not; links are looked at by both of their names."""
    for one in (path, path.resolve()):
        if _NAMES.fullmatch(one.name):
            return f"{one.name} is a name of keys or passwords"
        if not _FOLDERS.isdisjoint(one.parts):
            return f"{one} lies where keys or passwords lie"
    try:
        with path.open("rb") as handle:
            if _PRIVATE_KEY.search(handle.read(_HEAD)):
                return f"{path.name} holds a private key"
    except OSError:
        return None
    return None


def refuse_secret(path: Path, option: str) -> None:
    """``UsageError`` for a file that looks like a secret; ``option`` says what names it."""
    if why := what_secret(path):
        raise UsageError(
            f"--ray: {option} would send {path} to every node, and {why}; move it out of what travels, or give the "
            "file another name if it is none"
        )
