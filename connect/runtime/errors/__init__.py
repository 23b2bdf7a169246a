"""Records that fail: a task tries again, leaves them out, and writes them to a dead letter queue."""
