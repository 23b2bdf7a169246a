"""Stores of source offsets."""

from connect.stores.file_offsets import FileOffsetStore
from connect.stores.offsets import ConnectorOffsets, OffsetStore

__all__ = ["ConnectorOffsets", "FileOffsetStore", "OffsetStore"]
