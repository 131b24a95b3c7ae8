"""What is tried of a model before it is believed: fitting weights, reading from left to right."""
