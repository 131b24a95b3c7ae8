"""A second opinion on reported numbers: how far an interval should reach, and what chance gives, by other formulas."""
