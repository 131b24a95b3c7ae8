"""``lm-audit privacy``: its steps, and the options that they share."""

from lm_audit.audits.privacy.commands.steps import register

__all__ = ["register"]
