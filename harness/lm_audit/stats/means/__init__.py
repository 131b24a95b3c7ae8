"""Means: of independent values, of clusters, of crossed tables."""
