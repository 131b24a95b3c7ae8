"""A planted answer, and what every test must say of it."""
