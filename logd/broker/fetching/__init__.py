"""Waiting fetches, fetch sessions, cached responses, and reads that would wait for the disk."""
