"""A tuned agent behind an OpenAI-compatible endpoint."""
