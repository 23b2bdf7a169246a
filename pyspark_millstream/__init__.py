"""Where Spark looks for `format("millstream")`: `pyspark_<format>` exporting `DefaultSource`."""

from plugins.spark.source import MillstreamDataSource as DefaultSource

__all__ = ["DefaultSource"]
