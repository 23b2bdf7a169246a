"""Files: sources of growing files and of whole files in a folder, a sink, and Kafka's file stream pair."""

from plugins.files.sink import FilesSink
from plugins.files.source import FilesSource
from plugins.files.spool import SpoolSource
from plugins.files.stream import FileStreamSink, FileStreamSource

__all__ = ["FileStreamSink", "FileStreamSource", "FilesSink", "FilesSource", "SpoolSource"]
