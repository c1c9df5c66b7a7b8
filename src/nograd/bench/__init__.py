"""Measures one generation against the ways in which it is usually written, and against the machine's limits."""
