"""From a spec to a model in memory."""
