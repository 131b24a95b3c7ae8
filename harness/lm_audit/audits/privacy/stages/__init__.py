"""The four stages: what decides them, what they are trained on, and the run that makes them."""
