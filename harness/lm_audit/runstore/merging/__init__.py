"""One run of many: whether runs are parts of one, and the run that they make."""
