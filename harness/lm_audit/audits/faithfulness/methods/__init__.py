"""The attribution methods."""
