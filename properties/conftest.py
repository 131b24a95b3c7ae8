"""Hypothesis settings of all properties: no deadline, since a first call imports libraries and shared machines stall."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("properties", settings.default, deadline=None)
settings.load_profile("properties")
