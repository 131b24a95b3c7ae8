"""How hypothesis tries properties: the same examples each time, however long they take.

No deadline and no check of speed, since first calls import libraries and busy machines stall. What is tried depends on
the test alone, not on chance or on what an earlier run left: ``--hypothesis-profile search`` looks for new examples,
ten times as many where a property does not say how many.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def load_profile() -> None:
    """Make both profiles, and load the one of every run; the option has the last word."""
    patient = settings(settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("search", patient, max_examples=500)
    settings.register_profile("properties", patient, derandomize=True, database=None, max_examples=50)
    settings.load_profile("properties")
