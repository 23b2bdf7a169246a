"""Kafka 3's znodes: their paths and contents, and the tree of a cluster's metadata."""
