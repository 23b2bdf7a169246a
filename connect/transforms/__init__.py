"""Transforms and predicates: Kafka Connect's own, and the chain that applies a connector's."""
