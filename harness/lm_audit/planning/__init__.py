"""What a run can decide, before it runs: ``lm-audit plan``. Knows no audit: each declares its designs itself."""
