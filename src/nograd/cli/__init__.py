"""The command line. A command is a file here and a row of `app.COMMANDS`; it parses, calls and prints."""

from nograd.cli.main import main

__all__ = ["main"]
