"""Streams for Python: a KStream/KTable language over any Kafka-compatible log.

    builder = StreamsBuilder()
    airlines = builder.table("airlines", key_serde=str, value_serde=Airline)
    flights = builder.stream("flights", key_serde=str, value_serde=Flight)
    (
        flights.join(airlines, Departure.of)
        .group_by_key()
        .windowed_by(TimeWindows(timedelta(days=1), grace=timedelta(days=400)))
        .aggregate(Delays, Delays.add, value_serde=Delays, store="delays")
        .to_stream(key=lambda windowed, delays: windowed.key)
        .to("airline-delays", key_serde=str)
    )
    KafkaStreams(builder.build(), application_id="delays", bootstrap_servers="localhost:9092").run()

``testing.TopologyTestDriver`` runs the same topology in memory.
"""

from __future__ import annotations

from streams.config import StreamsConfig
from streams.dsl import (
    BranchedKStream,
    CogroupedKStream,
    Consumed,
    GlobalKTable,
    Grouped,
    Joined,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    Materialized,
    Printed,
    Produced,
    Repartitioned,
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindowedCogroupedKStream,
    TimeWindowedKStream,
)
from streams.errors import StreamsError, TopologyError
from streams.handlers import DeadLetter, ErrorContext, ErrorResponse, log_and_continue, log_and_fail
from streams.processors.custom import FixedKeyProcessor, FixedKeyRecord, Processor, ProcessorContext
from streams.processors.record import Record, RecordContext
from streams.processors.tables.transform_values import ValueTransformer
from streams.processors.windowing.join_windows import JoinWindows
from streams.processors.windowing.windows import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from streams.runtime.app import KafkaStreams
from streams.runtime.restore.restore_listener import StateRestoreListener
from streams.runtime.status import State
from streams.serdes import Serde, Window, Windowed
from streams.state import VersionedRecord
from streams.timestamps import log_and_skip_on_invalid_timestamp, wallclock_timestamp
from streams.topology import Topology

__all__ = [
    "BranchedKStream",
    "CogroupedKStream",
    "Consumed",
    "DeadLetter",
    "EmitStrategy",
    "ErrorContext",
    "ErrorResponse",
    "FixedKeyProcessor",
    "FixedKeyRecord",
    "GlobalKTable",
    "Grouped",
    "JoinWindows",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KafkaStreams",
    "Materialized",
    "Printed",
    "Processor",
    "ProcessorContext",
    "Produced",
    "Record",
    "RecordContext",
    "Repartitioned",
    "Serde",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "State",
    "StateRestoreListener",
    "StreamJoined",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "Suppressed",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "UnlimitedWindows",
    "ValueTransformer",
    "VersionedRecord",
    "Window",
    "Windowed",
    "log_and_continue",
    "log_and_fail",
    "log_and_skip_on_invalid_timestamp",
    "wallclock_timestamp",
]
