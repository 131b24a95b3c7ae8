"""The report's part in a pytest run: its hooks and what the terminal says."""
