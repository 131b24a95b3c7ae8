"""From requests to packs: the tree of shared prefixes, how it is cut, and the arrays of a pack."""
