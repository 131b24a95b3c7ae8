"""Requests to a server and their answers: sent by the official client, kept as they arrive, counted, paid for."""
