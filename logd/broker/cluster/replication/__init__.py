"""Replication: partitions led here, partitions followed here, and the fetchers between brokers."""
