"""The run's answer, what was found and what could not be told, and which cases are void."""
