"""Checkpoints whose weights are packed: by which method, with what, and whether all of it is there."""
