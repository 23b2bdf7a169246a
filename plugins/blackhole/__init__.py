"""Blackhole: a sink that counts records and drops them, for measurements and for trying a pipeline."""

from plugins.blackhole.sink import BlackholeSink

__all__ = ["BlackholeSink"]
