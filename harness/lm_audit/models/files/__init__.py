"""What lies on disk: a checkpoint's files, found and checked without torch."""
