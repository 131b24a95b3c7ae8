"""What a user may ask of a run on the command line."""
