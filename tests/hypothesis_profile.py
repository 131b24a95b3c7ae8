"""How hypothesis tries properties: the same examples each time, however long they take.

No deadline and no check of speed, since first calls import libraries and busy machines stall. What is tried depends on
the test alone, not on chance or on what an earlier run left: ``--hypothesis-profile search`` looks for new examples.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def load_profile() -> None:
    """Make both profiles, and load the one of every run; the option has the last word."""
    patient = settings(settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("search", patient)
    settings.register_profile("properties", patient, derandomize=True, database=None)
    settings.load_profile("properties")
