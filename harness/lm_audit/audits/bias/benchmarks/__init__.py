"""The public bias benchmarks."""
