"""Which transition between stages changed which metric."""
