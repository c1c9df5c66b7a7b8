"""A person's own tasks without an agent of their own: a file of tasks, a module of tools."""
