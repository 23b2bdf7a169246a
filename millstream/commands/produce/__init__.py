"""`millstream produce`: records from lines, JSON lines and files."""
