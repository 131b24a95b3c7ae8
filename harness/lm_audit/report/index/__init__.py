"""The page over all runs, and the server that shows it."""
