"""The text that needles are hidden in, and where it may be cut."""
