"""Hypothesis settings of all properties: no deadline, since first calls import libraries and busy machines stall."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("properties", settings.default, deadline=None)
settings.load_profile("properties")
