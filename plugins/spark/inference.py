"""Infers the columns of JSON values: a schema per topic, merged into the columns of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from plugins.spark.calls import PlannedRange
from plugins.spark.value_schemas import (
    Fold,
    MergedSchema,
    as_struct,
    closed,
    extend_topics,
    merge_topics,
    opened,
)

SAMPLED = 10_000
"""Offsets of a topic from which its schema is inferred first, shared out over its partitions."""
CORRUPT = "_corrupt_record"
"""The column Spark infers for values that are no JSON."""

Read = Callable[[Sequence[PlannedRange]], DataFrame]
"""Reads ranges of the log as the data source's rows."""


def declared_schema(ddl: str) -> StructType:
    """Return the columns that `value.schema` declares. Raises ValueError if it names no columns."""
    schema: object = StructType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        raise ValueError(f"value.schema must name columns: `carrier STRING, delay DOUBLE`, not {schema}")
    return schema


def case_folding(spark: SparkSession) -> Fold:
    """Return the function by which Spark compares names of columns."""
    return str if spark.conf.get("spark.sql.caseSensitive") == "true" else str.lower


class Inference:
    """The inference of columns from the ranges of one batch."""

    def __init__(self, spark: SparkSession, read: Read, ranges: Iterable[PlannedRange]) -> None:
        self._spark = spark
        self._read = read
        self._fold = case_folding(spark)
        self._ranges: dict[str, list[PlannedRange]] = {}
        for planned in ranges:
            self._ranges.setdefault(planned.topic, []).append(planned)

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the batch."""
        return frozenset(self._ranges)

    def columns(
        self,
        earlier: StructType | None,
        topics: Iterable[str],
        *,
        whole: bool = False,
        lenient: frozenset[str] = frozenset(),
    ) -> tuple[MergedSchema, frozenset[str]]:
        """Return the `earlier` columns with the fields of `topics` added, and the topics with any object.

        The first `SAMPLED` offsets of each topic are read, or all of the batch with `whole`. Raises
        SchemaConflict if a field does not fit an earlier column; of `lenient` topics it is only noted.
        """
        schemas = {topic: self._topic_schema(topic, whole) for topic in sorted(topics)}
        schemas = {topic: schema for topic, schema in schemas.items() if schema.fields}
        if earlier is None or not earlier.fields:
            merged = merge_topics(schemas, self._fold)
        else:
            merged = extend_topics(earlier, schemas, self._fold, lenient)
        return MergedSchema(as_struct(closed(merged.schema)), merged.notes), frozenset(schemas)

    def _topic_schema(self, topic: str, whole: bool) -> StructType:
        ranges = self._ranges[topic]
        if not whole:
            sampled = self._infer([_first(planned, SAMPLED // len(ranges)) for planned in ranges])
            if sampled.fields:
                return sampled
        # Tombstones may come first: without fields, those of all other values would have no column.
        return self._infer(ranges)

    def _infer(self, ranges: Sequence[PlannedRange]) -> StructType:
        texts = self._read(ranges).select(F.col("value").cast("string").alias("value"))
        values = texts.where(F.col("value").isNotNull())
        values.persist()
        try:
            inferred = self._spark.read.json(values).schema
            typed = self._spark.read.option("dropFieldIfAllNull", "true").json(values).schema
        finally:
            values.unpersist()
        fields = [field for field in inferred.fields if field.name != CORRUPT]
        return as_struct(opened(StructType(fields), typed))


def _first(planned: PlannedRange, offsets: int) -> PlannedRange:
    return replace(planned, end=min(planned.end, planned.start + max(1, offsets)))
