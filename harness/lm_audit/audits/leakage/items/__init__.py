"""Multiple-choice items, whatever form their files have."""
