"""What runs on a node: the Ray actor, the process of its pytest session, and what brings its files home."""
