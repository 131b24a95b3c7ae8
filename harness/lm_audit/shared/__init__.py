"""What every part of the package leans on: it knows nothing of models, audits, runs or reports."""
