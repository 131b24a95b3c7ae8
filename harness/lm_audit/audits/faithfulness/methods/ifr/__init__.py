"""Information flow routes, and the attention that they read."""
