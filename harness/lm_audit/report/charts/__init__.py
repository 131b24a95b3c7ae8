"""Charts and coloured text, drawn where a failure costs that figure alone."""
