"""Fetched records as Arrow columns, for sinks that take them; it needs pyarrow."""
