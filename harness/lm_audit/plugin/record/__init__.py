"""What a case measured goes to the ledger, is judged, and is found again by the next run."""
