"""Commits: a task's output, changelogs, offsets and transactions."""
