"""The state of a log's producers, and snapshots of it."""
