"""The page of a run: what it shows, and how that is laid out."""
