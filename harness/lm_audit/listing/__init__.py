"""What there is to run: audits, their cases, what these need, sizes and options. Nothing runs and no model loads."""
