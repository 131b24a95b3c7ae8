"""What the privacy audit's evidence holds beside numbers: conclusions, figures, where metrics come from."""
