"""Aggregations by key, window and session, of streams and of tables."""
