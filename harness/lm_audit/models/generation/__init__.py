"""Continuing prompts: rows in preallocated slots, and a plain loop for what has no such cache."""
