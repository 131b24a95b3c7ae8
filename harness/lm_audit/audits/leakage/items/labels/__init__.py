"""Labels of options: "(A)", "b.", "③", which say where an option stands."""
