"""Writes every projection: of a run, of a merged run, of evidence that was made without pytest."""
