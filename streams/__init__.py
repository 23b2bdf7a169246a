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

from streams.config import StreamsConfig, log_and_continue, log_and_fail
from streams.dsl import (
    Consumed,
    Grouped,
    Joined,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    Produced,
    StreamsBuilder,
    TimeWindowedKStream,
)
from streams.errors import StreamsError, TopologyError
from streams.processors.custom import Processor, ProcessorContext
from streams.processors.record import Record
from streams.processors.windows import TimeWindows
from streams.runtime.app import KafkaStreams
from streams.runtime.restore_listener import StateRestoreListener
from streams.runtime.status import State
from streams.serdes import Serde, Window, Windowed
from streams.topology import Topology

__all__ = [
    "Consumed",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KStream",
    "KTable",
    "KafkaStreams",
    "Materialized",
    "Processor",
    "ProcessorContext",
    "Produced",
    "Record",
    "Serde",
    "State",
    "StateRestoreListener",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "TimeWindowedKStream",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "Window",
    "Windowed",
    "log_and_continue",
    "log_and_fail",
]
