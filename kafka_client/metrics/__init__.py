"""Metrics by Kafka's names, read from their owners when somebody asks."""
