"""The formats of tables: opens the one of a connector's settings, or the one that a folder has."""

from __future__ import annotations

from pathlib import Path

from connect.api import ConfigError
from plugins.spark.settings import TableFormat
from plugins.spark.sink_table import SinkTable
from plugins.spark.table import MANIFESTS, ParquetTable

DELTA_LOG = "_delta_log"


def format_of(path: Path) -> TableFormat | None:
    """Return the format of the table in the folder, or None if there is none."""
    if (path / MANIFESTS).is_dir():
        return "parquet"
    return "delta" if (path / DELTA_LOG).is_dir() else None


def open_table(path: Path) -> SinkTable:
    """Return the table in the folder, for readers and tools; without any, a Parquet table without state."""
    return _delta(path, None) if format_of(path) == "delta" else ParquetTable(path)


def open_target(path: Path, table_format: TableFormat, connector: str) -> SinkTable:
    """Return the table that the connector writes, which may not exist yet.

    Raises ConfigError if the folder has a table of another format, or the format needs a missing package.
    """
    existing = format_of(path)
    if existing not in (None, table_format):
        raise ConfigError(
            "table.format", table_format, f"{path} is a table of the format {existing}: take a new path"
        )
    return _delta(path, connector) if table_format == "delta" else ParquetTable(path)


def _delta(path: Path, connector: str | None) -> SinkTable:
    try:
        from plugins.spark.delta_table import DeltaTable
    except ImportError as e:
        raise ConfigError("table.format", "delta", "needs deltalake: pip install 'millstream[delta]'") from e
    return DeltaTable(path, connector)
