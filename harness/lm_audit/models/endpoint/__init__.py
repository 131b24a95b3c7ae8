"""Models behind a server that speaks OpenAI's protocol. Importing the package imports neither ``openai`` nor torch."""
