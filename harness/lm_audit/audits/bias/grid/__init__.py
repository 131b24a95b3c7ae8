"""The preference grid: word pairs, templates and groups, and its controls."""
