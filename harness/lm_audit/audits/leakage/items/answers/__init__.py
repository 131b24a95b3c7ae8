"""Which option is right: columns of answers, the ways to read them, and what holds where two of them differ."""
