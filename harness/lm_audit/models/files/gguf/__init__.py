"""GGUF files: their header, what they state, and their conversion to a model folder."""
