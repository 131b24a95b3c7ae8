"""Lengths up to which a model treats every position alike; see :mod:`lm_audit.models.context`, which reads them."""

from lm_audit.models.context import attention_reach, context_window, uniform_rotation

__all__ = ["attention_reach", "context_window", "uniform_rotation"]
