"""Before anything runs: what there is to run (``lm-audit list``), what it can decide (``lm-audit plan``)."""
