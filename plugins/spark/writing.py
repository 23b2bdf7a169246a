"""Writes a batch: reads offset ranges of the log, infers columns where needed, writes Parquet files."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from kafka_client import Client
from plugins.spark.calls import PlannedRange, WriteRequest, WriteResult
from plugins.spark.delta_schema import added_fields
from plugins.spark.errors import JobBrokenOff, TopicRecreated
from plugins.spark.formats import format_of, open_table
from plugins.spark.inference import Inference, declared_schema
from plugins.spark.options import parse_options
from plugins.spark.reading import read_files
from plugins.spark.rows import hidden_fields, shape_rows
from plugins.spark.settings import RowShape, file_url
from plugins.spark.source import MillstreamDataSource
from plugins.spark.written import written_files, written_ranges


def write_batch(spark: SparkSession, request: WriteRequest) -> WriteResult:
    """Read ranges of the log and write them as Parquet files. Return the files, and the columns now.

    Raises SchemaConflict, TopicRecreated, ValueError for settings that fit no table, and Spark's errors.
    """
    batch = _Batch(spark, request)
    columns = batch.first_columns()
    written = batch.write(columns)
    if batch.is_incomplete(columns, written.counts):
        shutil.rmtree(request.directory)
        columns = batch.all_columns(columns)
        written = batch.write(columns)
    batch.check_topic_ids()
    return WriteResult(
        rows_read=written.counts.rows,
        files=written_files(request.directory, request.file_root),
        ranges=written_ranges(request.directory, request.shape),
        value_schema=columns.value_json,
        table_schema=written.table_schema.json(),
        inferred_topics=tuple(sorted(columns.topics)),
        notes=(*columns.notes, *written.counts.notes()),
    )


def columns_without_records(spark: SparkSession, shape: RowShape) -> StructType:
    """Return the columns of rows of this shape, without fields of values that are to be inferred.

    Raises ValueError if a partition column is made of such fields.
    """
    value: StructType | None = None
    if shape.value_format == "json":
        value = StructType([]) if shape.value_schema is None else declared_schema(shape.value_schema)
    try:
        return shape_rows(spark.createDataFrame([], MillstreamDataSource({}).schema()), shape, value).schema
    except AnalysisException as e:
        raise ValueError(
            f"partition.by: a new table needs the types of its partition columns, and Spark says {e}: "
            "declare the values' columns in value.schema"
        ) from e


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The columns of a batch. `topics` are those whose fields were inferred, `fresh` those of this batch."""

    value: StructType | None
    topics: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def value_json(self) -> str | None:
        """The form to store. Columns without any field are not stored: later values add theirs."""
        return self.value.json() if self.value is not None and self.value.fields else None


class _Counts(msgspec.Struct, kw_only=True):
    """The counts that Spark made while it read: of records, and of values that lost something."""

    rows: int = 0
    unfit: int = 0
    unfit_example: str | None = None
    unknown: int = 0
    unknown_example: str | None = None

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each kind of loss."""
        notes = []
        if self.unfit_example is not None:
            notes.append(
                f"{self.unfit} values are no JSON objects of the columns' types, such as "
                f"{self.unfit_example}: the fields that do not fit are null"
            )
        if self.unknown_example is not None:
            notes.append(
                f"{self.unknown} values have fields without a column, such as {self.unknown_example}: add "
                "them to value.schema, or set schema.evolution=backward"
            )
        return tuple(notes)


class _Written(NamedTuple):
    """The columns of the table after a write, and what Spark counted."""

    table_schema: StructType
    counts: _Counts


class _Batch:
    """The steps of writing one batch."""

    def __init__(self, spark: SparkSession, request: WriteRequest) -> None:
        self._spark = spark
        self._request = request
        self._inference = Inference(spark, self._read, request.ranges)

    def first_columns(self) -> _Columns:
        """Return the columns to write the batch by; topics of which none had a value before add theirs."""
        request, shape = self._request, self._request.shape
        if shape.value_format != "json":
            return _Columns(value=None)
        if shape.value_schema is not None:
            return _Columns(value=declared_schema(shape.value_schema))
        fresh = self._inference.topics - set(request.inferred_topics)
        merged, with_objects = self._inference.columns(self._earlier, fresh)
        return _Columns(
            value=merged.schema,
            topics=frozenset(request.inferred_topics) | with_objects,
            fresh=with_objects,
            notes=merged.notes,
        )

    def is_incomplete(self, columns: _Columns, counts: _Counts) -> bool:
        """Return True if the whole batch has to be looked through for columns, which takes another read.

        A sample has not shown all fields of a topic, or the columns of a topic may grow (schema.evolution).
        """
        return bool(
            (columns.fresh and (counts.unknown or counts.unfit))
            or (self._request.evolve and counts.unknown and columns.topics)
        )

    def all_columns(self, columns: _Columns) -> _Columns:
        """Return the columns with every field of the batch's values."""
        topics = self._inference.topics if self._request.evolve else columns.fresh
        earlier_topics = frozenset(self._request.inferred_topics)
        merged, _ = self._inference.columns(self._earlier, topics, whole=True, lenient=earlier_topics)
        return _Columns(value=merged.schema, topics=columns.topics, fresh=columns.fresh, notes=merged.notes)

    def write(self, columns: _Columns) -> _Written:
        """Write the batch to its directory by these columns."""
        request = self._request
        observed = Observation()
        rows = shape_rows(
            self._read(request.ranges),
            request.shape,
            columns.value,
            generations=request.generations,
            observed=observed,
        )
        hidden = {field.name for field in hidden_fields(request.shape.record_prefix)}
        schema = StructType([field for field in rows.schema.fields if field.name not in hidden])
        if request.table_schema is not None:
            self._check_earlier_rows(StructType.fromJson(json.loads(request.table_schema)), schema)
        folders = [column.name for column in request.shape.partition_by]
        writer = rows.repartition(*folders) if folders else rows
        writer.write.partitionBy(*folders).parquet(file_url(Path(request.directory)))
        return _Written(schema, _observed(observed))

    def check_topic_ids(self) -> None:
        """Raise TopicRecreated unless every topic is still the one that was planned to be read.

        Ids are never used again. So a topic that has its planned id now was read under this id.
        """
        planned = {topic: id for topic, id in self._request.topic_ids.items() if id.strip("0")}
        if planned:
            current = asyncio.run(self._topic_ids(list(planned)))
            for topic, topic_id in planned.items():
                if topic not in current:
                    raise JobBrokenOff(f"topic {topic} was deleted while it was read")
                if current[topic] != topic_id:
                    raise TopicRecreated(topic, topic_id, current[topic])

    async def _topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        options = parse_options(self._source_options(self._request.ranges))
        async with Client(options.bootstrap_servers, **options.client) as client:
            metadata = await client.metadata(topics, allow_missing=True)
        return {name: topic.topic_id.hex() for name, topic in metadata.topics.items() if name in topics}

    @cached_property
    def _earlier(self) -> StructType | None:
        stored = self._request.value_schema
        return None if stored is None else StructType.fromJson(json.loads(stored))

    def _check_earlier_rows(self, old: StructType, new: StructType) -> None:
        """Raise ValueError if columns have new types and Spark cannot read the newest file with them.

        A Delta table keeps its types: SchemaConflict.

        Spark widens some types but not others. So the read is tried before the commit, as a committed table
        of mixed types might not be readable at all.
        """
        before = {field.name: field.dataType for field in old}
        changed = [f for f in new if f.name in before and before[f.name] != f.dataType]
        if not changed:
            return
        root = Path(self._request.file_root)
        if format_of(root) == "delta":
            added_fields(old.json(), new.json())
            return
        table = open_table(root)
        try:
            earlier = read_files(self._spark, table, table.newest_files(1), new)
            earlier.write.format("noop").mode("overwrite").save()
        except (Py4JJavaError, PySparkException) as e:
            types = ", ".join(
                f"{f.name} was {before[f.name].simpleString()} and is {f.dataType.simpleString()}"
                for f in changed
            )
            raise ValueError(
                f"the table's rows cannot be read by the new types: {types}; take a new path"
            ) from e

    def _read(self, ranges: Sequence[PlannedRange]) -> DataFrame:
        return self._spark.read.format("millstream").options(**self._source_options(ranges)).load()

    def _source_options(self, ranges: Sequence[PlannedRange]) -> dict[str, str]:
        request = self._request
        starts: dict[str, dict[str, int]] = {}
        ends: dict[str, dict[str, int]] = {}
        for r in ranges:
            starts.setdefault(r.topic, {})[str(r.partition)] = r.start
            ends.setdefault(r.topic, {})[str(r.partition)] = r.end
        assigned = {topic: sorted(map(int, offsets)) for topic, offsets in starts.items()}
        return {
            **request.client_options,
            "kafka.bootstrap.servers": request.bootstrap_servers,
            "assign": json.dumps(assigned),
            "startingOffsets": json.dumps(starts),
            "endingOffsets": json.dumps(ends),
            "failOnDataLoss": str(request.fail_on_data_loss).lower(),
            "failOnUnreadableBatch": str(request.fail_on_unreadable_batch).lower(),
        }


def _observed(observed: Observation) -> _Counts:
    """Return what Spark counted. Its optimizer drops the observation of an empty read: that is 0."""
    try:
        return msgspec.convert(observed.get, _Counts)
    except (KeyError, Py4JJavaError):
        return _Counts()
