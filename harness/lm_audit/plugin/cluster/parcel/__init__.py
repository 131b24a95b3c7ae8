"""What travels to the nodes: the code and the data that a run needs, nothing secret, not too much."""
