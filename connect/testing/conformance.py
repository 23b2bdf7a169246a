"""The conformance suites for plugins: inherit one in a test class, and pytest runs its tests."""

from connect.testing.sink_conformance import SinkConformance
from connect.testing.source_conformance import SourceConformance

__all__ = ["SinkConformance", "SourceConformance"]
