"""Whether what lies in a run's folder is sound: the shapes of its records, and whether they are this run's and all."""
