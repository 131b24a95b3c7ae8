"""Statistics for audits: intervals, tests, ranking metrics, privacy bounds. Knows nothing of models or pytest."""

from harness.stats.estimate import Estimate

__all__ = ["Estimate"]
