"""GPU kernels of a pass, and how they take the place of a model's own parts for its length."""
