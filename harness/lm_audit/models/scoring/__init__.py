"""The scoring engine: log-likelihoods of many (prefix, target) requests in as few operations as they need."""

from lm_audit.models.scoring.requests import Bos, Request
from lm_audit.models.scoring.results import TokenScores

__all__ = ["Bos", "Request", "TokenScores"]
