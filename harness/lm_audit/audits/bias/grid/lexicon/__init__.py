"""What a preference grid is made of, read from a file, held to a limit and checked before a model loads."""
