"""The node that owns the state: topics, partitions, delayed operations, housekeeping."""
