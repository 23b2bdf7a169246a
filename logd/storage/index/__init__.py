"""Finding a place in a segment: by offset, by time, and the transactions aborted in it."""
