"""Decoding many rows at once: each has a slot of one cache, and joins as others leave."""
