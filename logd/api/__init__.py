"""Kafka's APIs: requests dispatched, handled and answered.

``table`` maps API keys to modules of ``handlers`` and holds the served ranges, so that a module is imported
at its first request only. Fetch and Produce have directories of their own.
"""
