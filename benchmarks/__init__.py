"""Measurements, not tests: each module runs against any broker by --bootstrap-server."""
