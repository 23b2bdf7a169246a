"""Background work on logs: retention, flushes, compaction, moves between log directories, truncation."""
