"""The embedded models, and the training of toys in which an effect is planted."""
