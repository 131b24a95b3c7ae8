"""How numbers, names and titles are written: one way for page, terminal, comparison and tables."""
