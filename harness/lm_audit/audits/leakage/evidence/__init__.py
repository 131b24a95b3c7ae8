"""What the leakage audit's evidence holds beside numbers: conclusions, figures, what was read and left out."""
