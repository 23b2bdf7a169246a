"""A task: its inputs, its turns, and what is reported of it."""
