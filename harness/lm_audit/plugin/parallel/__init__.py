"""Workers: how many, which case goes to which, and what a crash costs."""
