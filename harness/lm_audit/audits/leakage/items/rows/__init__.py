"""Rows of the files that questions come in, whatever their format and nesting."""
