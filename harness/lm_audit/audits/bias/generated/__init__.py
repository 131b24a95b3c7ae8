"""What the model writes: refusals and continuations, by group and after a swap of gender."""
