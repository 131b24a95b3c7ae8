"""Audit cases: markers, parameters, collection and fixtures."""
