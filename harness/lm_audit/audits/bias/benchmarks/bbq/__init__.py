"""BBQ and CBBQ."""
