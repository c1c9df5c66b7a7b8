"""Tuned coefficients as files that other programs load."""
