"""Spark: `format("millstream")` reads the log; the sink hands it offset ranges to write a table.

    source      the Python data source          sink     the Connect connector: plan, verify, commit
    ranges      offsets → input partitions      table    the Parquet table: manifests, one atomic commit
    arrow       record batches → Arrow          driver   the child process that holds the Spark session
    options     the Kafka source's options      jobs     what the driver process is asked to do

Only `source`, `session`, `jobs`, `rows` and `reading` import pyspark. Names are looked up when they are
asked for, since executors load `source` alone and the Connect worker needs no pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugins.spark.driver import SparkDriver
    from plugins.spark.reading import read_table
    from plugins.spark.settings import SparkSettings
    from plugins.spark.sink import SparkSink

__all__ = ["SparkDriver", "SparkSettings", "SparkSink", "read_table"]

_HOMES = {"SparkDriver": "driver", "SparkSettings": "settings", "SparkSink": "sink", "read_table": "reading"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
