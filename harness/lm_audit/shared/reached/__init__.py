"""What a case can reach beside this package: sources, packages beneath, files that it opens."""
