"""A partition's log: reading, appending, flushing, recovery, and moving to another directory."""
