"""Two runs or two models beside one another: what changed, and how sure that is."""
