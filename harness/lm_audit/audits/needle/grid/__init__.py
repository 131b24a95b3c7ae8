"""Grids of samples: lengths, depths, and where accuracy falls."""
