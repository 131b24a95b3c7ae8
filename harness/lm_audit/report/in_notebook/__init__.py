"""Evidence and runs in a notebook: what a cell shows of them, and data frames."""
