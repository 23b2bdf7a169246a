"""`millstream consume`: records of topics on stdout."""
