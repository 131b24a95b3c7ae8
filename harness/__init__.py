"""Audits of causal language models, written and run as pytest."""
