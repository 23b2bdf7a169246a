"""The spool source: takes whole files of a folder, and moves or deletes those that it has read."""

from plugins.files.spool.source import SpoolSource

__all__ = ["SpoolSource"]
