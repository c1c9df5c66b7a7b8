"""Looks for the ways a run can fail in silence, before anyone spends a night on it."""
