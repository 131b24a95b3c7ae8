"""How a server is talked to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EndpointSettings:
    """How a server is talked to; all of it has a default.

    ``concurrency``: requests in flight. ``timeout_s``: seconds that one request may take before it counts as lost and
    is sent again, at most ``retries`` times. ``chat``: whether the chat route may be used. ``tokenizer``: a local model
    whose tokenizer is the server's. ``budget``: tokens (prompts and answers) that all requests together may cost.
    ``folder``: where every answer is written as it arrives, and looked up before a request is sent; ``reuse``: further
    folders of answers to look in. ``writer`` names this process's file there. ``repeat_checks``: how many greedy
    requests are asked twice to find out whether the server is deterministic.
    """

    concurrency: int = 16
    timeout_s: float = 300.0
    retries: int = 6
    chat: bool = True
    allow_insecure: bool = False
    tokenizer: str | None = None
    budget: int | None = None
    folder: Path | None = None
    reuse: Sequence[Path] = ()
    writer: str = "main"
    repeat_checks: int = 10
