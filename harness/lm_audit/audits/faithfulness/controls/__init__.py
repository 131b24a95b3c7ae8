"""Controls: models whose sources are known, and orders of known worth."""
