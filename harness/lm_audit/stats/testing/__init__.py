"""Tests: by permutation, of equivalence, and what power they have."""
