"""From the options to the reports: how a run begins, is stopped, and ends."""
