"""Passages: a prompt and its generation as tokens, spans and sentences."""
