"""Shares and their differences."""
