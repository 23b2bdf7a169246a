"""Joins: stream to stream, stream to table, table to table, and by foreign key."""
