"""Filling many partitions evenly, as fast as the broker takes it, to measure recovery and idling on."""

from __future__ import annotations

import random

from benchmarks import raw
from benchmarks.broker import Broker
from kafka_client.records import build_batch
from kafka_client.records.build import restamp
from kafka_client.records.header import read_header
from kafka_client.wire.produce import encode_produce_request

BATCH_RECORDS = 16
RECORD_BYTES = 1000
"""Together about 16 KB, the size Kafka's producer aims at."""
PARTITIONS_PER_REQUEST = 50


class Filler:
    """A writer of rounds, each of one batch to every partition of a topic, like an idempotent producer."""

    def __init__(self, topic: str, partitions: int) -> None:
        self._producer_id = random.getrandbits(40)
        self._topic = topic
        self._partitions = partitions
        self._sequence = 0
        self._batch = build_batch([(1_700_000_000_000, None, b"v" * RECORD_BYTES, ())] * BATCH_RECORDS)
        self._header = read_header(self._batch)
        self.round_bytes = partitions * len(self._batch)

    def fill(self, broker: Broker, bytes_wanted: int, *, in_flight: int = 4) -> None:
        """Write `bytes_wanted`, rounded up to whole rounds."""
        with raw.connect(broker.host, broker.port) as connection:
            drain = raw.Drain(connection)
            unanswered = 0
            for _ in range(-(-bytes_wanted // self.round_bytes)):
                for chunks in self._requests():
                    connection.sendall(b"".join(chunks))
                    unanswered += 1
                    if unanswered == in_flight:
                        drain.frame()
                        unanswered -= 1
            for _ in range(unanswered):
                drain.frame()

    def _requests(self) -> list[list[bytes | bytearray | memoryview]]:
        batch = restamp(
            self._batch,
            self._header,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        self._sequence += BATCH_RECORDS
        numbers = range(self._partitions)
        return [
            encode_produce_request(
                [(self._topic, [(n, batch) for n in numbers[start : start + PARTITIONS_PER_REQUEST]])],
                7,
                1,
                "bench",
                acks=1,
            )
            for start in range(0, self._partitions, PARTITIONS_PER_REQUEST)
        ]
