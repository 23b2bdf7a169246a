"""The API for authors of connectors; plugins import nothing else of Connect.

A connector is a `SourceConnector` or `SinkConnector` with a typed `Config` and a task class: `SourceTask`,
`BatchSourceTask`, `SinkTask`, `ColumnarSinkTask`, `JsonSinkTask` or `RangeSinkTask`. Short forms are
generator functions under `@source` and functions under `@sink`.
"""

from connect.api import schema
from connect.api.batch_source import BatchSourceTask
from connect.api.calls import MaybeAwaitable
from connect.api.columnar_sink import ColumnarSinkTask, ColumnBatch
from connect.api.errant_records import ErrantRecordReporter, Report
from connect.api.generators import source
from connect.api.json_sink import JsonBatch, JsonSinkTask
from connect.api.offset_claims import OffsetClaims, StoredClaim, ends_of, is_unwritten, unwritten
from connect.api.range_sink import OffsetRange, RangeSinkContext, RangeSinkTask
from connect.api.raw_batch import RawBatch
from connect.api.records import Header, Origin, SinkRecord, SourceBatch, SourceRecord
from connect.api.schema import Schema, Type
from connect.api.sink import SinkConnector, SinkTask, SinkTaskContext
from connect.api.sink_functions import sink
from connect.api.source import ConnectorContext, OffsetReader, SourceConnector, SourceTask, SourceTaskContext
from connect.api.transactions import TransactionContext
from connect.api.transform import Predicate, Transform
from connect.config import Config, Password, SinkConfig, SourceConfig, at_least, setting
from connect.errors import ConfigError, ConnectError, DataError, NotFound, PartitionsFenced, RetriableError
from kafka_client import RecordMetadata, TopicPartition

__all__ = [
    "BatchSourceTask",
    "ColumnBatch",
    "ColumnarSinkTask",
    "Config",
    "ConfigError",
    "ConnectError",
    "ConnectorContext",
    "DataError",
    "ErrantRecordReporter",
    "Header",
    "JsonBatch",
    "JsonSinkTask",
    "MaybeAwaitable",
    "NotFound",
    "OffsetClaims",
    "OffsetRange",
    "OffsetReader",
    "Origin",
    "PartitionsFenced",
    "Password",
    "Predicate",
    "RangeSinkContext",
    "RangeSinkTask",
    "RawBatch",
    "RecordMetadata",
    "Report",
    "RetriableError",
    "Schema",
    "SinkConfig",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceBatch",
    "SourceConfig",
    "SourceConnector",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "StoredClaim",
    "TopicPartition",
    "TransactionContext",
    "Transform",
    "Type",
    "at_least",
    "ends_of",
    "is_unwritten",
    "schema",
    "setting",
    "sink",
    "source",
    "unwritten",
]
