"""Datagen: a source of made-up records, for demonstrations, tests and measurements."""

from plugins.datagen.confluent import ConfluentDatagen
from plugins.datagen.source import DatagenSource

__all__ = ["ConfluentDatagen", "DatagenSource"]
