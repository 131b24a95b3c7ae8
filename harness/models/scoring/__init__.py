"""The scoring engine: log-likelihoods of many (prefix, target) requests in as few operations as they need."""

from harness.models.scoring.requests import Bos, Request
from harness.models.scoring.results import TokenScores

__all__ = ["Bos", "Request", "TokenScores"]
