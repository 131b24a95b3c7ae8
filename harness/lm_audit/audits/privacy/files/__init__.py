"""The files of the privacy audit: its outputs, and evidence on disk."""
