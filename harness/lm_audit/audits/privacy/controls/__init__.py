"""Controls with an answer known beforehand."""
