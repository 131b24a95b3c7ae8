"""What was asked of a server, and how fast it came back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """Requests that were sent, answers that were kept already, tokens, retries, and the seconds spent on requests."""

    requests: int = 0
    kept: int = 0
    tokens: int = 0
    retries: int = 0
    seconds: float = 0.0

    def since(self, before: Traffic) -> Traffic:
        """What came after ``before``."""
        return Traffic(
            self.requests - before.requests,
            self.kept - before.kept,
            self.tokens - before.tokens,
            self.retries - before.retries,
            self.seconds - before.seconds,
        )

    @property
    def told(self) -> str:
        """In one line: ``1,200 requests, 152.3 a second, 45,678 tokens``."""
        rate = f", {self.requests / self.seconds:,.1f} a second" if self.requests and self.seconds > 0 else ""
        kept = f", {self.kept:,} answers kept from before" if self.kept else ""
        again = f", {self.retries:,} retries" if self.retries else ""
        return f"{self.requests:,} requests{rate}, {self.tokens:,} tokens{again}{kept}"
