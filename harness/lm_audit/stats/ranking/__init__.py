"""How well scores tell members from controls."""
