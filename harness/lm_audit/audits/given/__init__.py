"""Rows that a user gives, whatever holds them: files of rows, what `datasets` saved, sets of the hub."""
