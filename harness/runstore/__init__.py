"""The run store: ledger writer, reader and fold. Knows nothing of pytest, models or any one audit."""
