"""Writing batches: what waits, by partition and by broker, until it is acknowledged."""
