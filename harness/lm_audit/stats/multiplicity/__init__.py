"""Adjustment for the number of tests, flat and in families."""
