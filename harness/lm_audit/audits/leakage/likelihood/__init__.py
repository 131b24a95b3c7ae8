"""The likelihood of a benchmark's texts."""
