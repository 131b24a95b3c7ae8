"""One sample: a prompt of exact length with needles at exact depths."""
