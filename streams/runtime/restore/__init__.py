"""Restoring state: changelogs, source topics, global tables, and listeners."""
