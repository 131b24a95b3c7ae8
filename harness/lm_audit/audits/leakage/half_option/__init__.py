"""The half-option probe: conditions, cuts, completions and their scores."""
