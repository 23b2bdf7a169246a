"""Files: a source of CSV, JSON lines and text, a sink of JSON lines and Parquet, Kafka's file stream pair."""

from plugins.files.sink import FilesSink
from plugins.files.source import FilesSource
from plugins.files.stream import FileStreamSink, FileStreamSource

__all__ = ["FileStreamSink", "FileStreamSource", "FilesSink", "FilesSource"]
