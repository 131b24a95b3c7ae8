"""``--ray``: the cases of a run on the workers of a Ray cluster. Nothing here is imported without the option."""
