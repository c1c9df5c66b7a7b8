"""Puts this folder on the path: worlds that several test packages use lie here."""
