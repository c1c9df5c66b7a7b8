"""Tasks from BFCL simple-python (Patil et al., 2024): data, split, argument checker and the task family."""
