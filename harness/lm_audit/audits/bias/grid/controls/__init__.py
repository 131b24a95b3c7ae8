"""The controls of the preference grid: what is planted, what decides, and what to hold the numbers against."""
