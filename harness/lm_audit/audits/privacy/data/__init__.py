"""Canaries, corpus and preferences: the texts that the stages are trained on."""
