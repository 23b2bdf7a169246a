"""Produce: batches validated, appended and acknowledged."""
