"""A run as tables and files for programs."""
