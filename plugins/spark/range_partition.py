"""The input of a task: a range of offsets."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from plugins.spark.log_range import LogRange


class RangePartition(InputPartition):
    """The range of offsets of one task, or None if there is nothing to read."""

    def __init__(self, log_range: LogRange | None) -> None:
        super().__init__(log_range)
