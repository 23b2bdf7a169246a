"""The connectors of Kafka's system tests: verifiable source and sink, schema source, mock source and sink."""

from plugins.verifiable.mock import MockSink, MockSource
from plugins.verifiable.schemas import SchemaSource
from plugins.verifiable.sink import VerifiableSink
from plugins.verifiable.source import VerifiableSource

__all__ = ["MockSink", "MockSource", "SchemaSource", "VerifiableSink", "VerifiableSource"]
