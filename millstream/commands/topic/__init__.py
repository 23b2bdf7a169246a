"""The command `millstream topic`: topics and where their partitions are."""
