"""Answerers of known behaviour: what the audit must find in them."""
