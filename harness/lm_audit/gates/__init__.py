"""Gates: limits on metrics, and whether they can be meant."""
