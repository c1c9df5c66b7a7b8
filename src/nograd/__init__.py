"""nograd: improve frozen LLM agents with forward passes only."""

__version__ = "0.1.0"
