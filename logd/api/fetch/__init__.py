"""Fetch: batches read as they lie in the log, for consumers and for followers."""
