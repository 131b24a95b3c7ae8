"""Properties are tried as ``tests.hypothesis_profile`` says."""

from __future__ import annotations

from tests.hypothesis_profile import load_profile

load_profile()
