"""WinoBias and Winogender: whom a pronoun is taken to mean."""
