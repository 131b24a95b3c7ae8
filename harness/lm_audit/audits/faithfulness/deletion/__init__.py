"""Deletion curves: what happens when the most important tokens go."""
