"""Topics with everything in them a log can have, and what clients see of them, the same on any broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_client.records import NewRecord, build_batch
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS = 100.0
STEP_MS = 2000
"""Between one group of records and the next; more than a segment lasts."""
AHEAD_MS = 600_000
"""How far in the future the first group is: markers, which have the broker's time, begin no segments then."""
TRIMMED_TO = 10
KEYS = 10
COMMITTED = 3
"""The offset a group has committed."""

SMALL = {"segment.ms": "1000", "index.interval.bytes": "100", "retention.ms": "-1"}
TOPICS = {
    "all": SMALL,
    "stamped": {**SMALL, "message.timestamp.type": "LogAppendTime"},
    "trimmed": SMALL,
    "emptied": SMALL,
    "compacted": {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}


class Clock:
    """Timestamps of records, so that segments end without waiting."""

    def __init__(self) -> None:
        self._now = int(time.time() * 1000) + AHEAD_MS

    def step(self) -> int:
        """Return the timestamp of the next group of records."""
        self._now += STEP_MS
        return self._now


class Idempotent(NamedTuple):
    """A producer by hand, its last batch sent once."""

    topic: str
    producer_id: int
    epoch: int
    sequence: int
    offset: int

    def batch(self, gap: int = 0) -> bytes:
        """Its batch of two records, `gap` records after the one sent last."""
        records: list[NewRecord] = [(int(time.time() * 1000), b"by", b"hand", ())] * 2
        sequence = self.sequence + gap
        return build_batch(
            records, producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=sequence
        )


class Served(NamedTuple):
    """Comparable view that clients have of one topic."""

    records: list[Any]
    committed: list[Any]
    stable_end: int
    bounds: tuple[int, int]
    offsets_for_times: list[int]


def producer(bootstrap: str, **settings: object) -> Producer:
    """Return a producer that reports errors only by its calls."""
    return Producer({"bootstrap.servers": bootstrap, "log_level": 2, **settings})


def transactional(bootstrap: str, name: str, **settings: object) -> Producer:
    """Return a producer with this transactional id; a transaction left open under the id is aborted."""
    made = producer(bootstrap, **{"transactional.id": name, **settings})
    made.init_transactions(SECONDS)
    return made


def fill(logd: LogdProcess, prefix: str, folder: Path) -> Idempotent:
    """Write the topics; a transaction stays open in `all`."""
    admin = AdminClient({"bootstrap.servers": logd.bootstrap, "log_level": 2})
    made = [NewTopic(f"{prefix}-{name}", 1, 1, config=config) for name, config in TOPICS.items()]
    for created in admin.create_topics(made).values():
        created.result()
    clock = Clock()
    everything = f"{prefix}-all"
    by_hand = _by_hand(logd, everything)
    for codec in CODECS:
        _fill_codec(logd.bootstrap, everything, codec, clock)
    _compact(logd.bootstrap, f"{prefix}-compacted", folder, clock)
    plain = producer(logd.bootstrap, **{"linger.ms": 5, "compression.type": "lz4"})
    for number in range(12):
        for name in ("stamped", "trimmed", "emptied"):
            send(plain, f"{prefix}-{name}", clock.step(), [f"{number} {part}" for part in range(3)])
    for name, offset in (("trimmed", TRIMMED_TO), ("emptied", -1)):
        (deleted,) = admin.delete_records([TopicPartition(f"{prefix}-{name}", 0, offset)]).values()
        deleted.result()
    consumer = Consumer({"bootstrap.servers": logd.bootstrap, "group.id": f"{prefix}-group"})
    consumer.commit(offsets=[TopicPartition(everything, 0, COMMITTED, metadata="größe")], asynchronous=False)
    consumer.close()
    left_open = transactional(logd.bootstrap, f"{prefix}-open")
    left_open.begin_transaction()
    send(left_open, everything, clock.step(), ["open 0", "open 1"])
    return by_hand


def send(sender: Producer, topic: str, timestamp: int, values: list[str | None]) -> None:
    """Send one group of records, with and without keys and headers, and wait until they are written."""
    for number, value in enumerate(values):
        headers = [("h", b"x"), ("h", None), ("größe", b"")] if number % 2 else None
        key = b"key %d" % number if number != 2 else None
        sender.produce(topic, value, key, timestamp=timestamp + number, headers=headers)
    assert sender.flush(SECONDS) == 0


def _by_hand(logd: LogdProcess, topic: str) -> Idempotent:
    with RawClient(logd.port) as client:
        response = client.request(InitProducerIdRequest(), 4)
        made = Idempotent(topic, response.producer_id, response.producer_epoch, 0, 0)
        for sequence in (0, 2):
            made = made._replace(sequence=sequence)
            written = client.produce(topic, made.batch())
            assert written.error_code == 0
            made = made._replace(offset=written.base_offset)
    return made


def _fill_codec(bootstrap: str, topic: str, codec: str, clock: Clock) -> None:
    compressed: dict[str, object] = {"compression.type": codec, "linger.ms": 5}
    plain = producer(bootstrap, **compressed)
    send(plain, topic, clock.step(), [f"{codec} plain", None, "", "x" * 2000])
    sender = transactional(bootstrap, f"{topic}-{codec}", **compressed)
    for number, end in enumerate(
        (sender.commit_transaction, sender.abort_transaction, sender.commit_transaction)
    ):
        sender.begin_transaction()
        send(sender, topic, clock.step(), [f"{codec} {number} {part} größe" for part in range(5)])
        end(SECONDS)


def _compact(bootstrap: str, topic: str, folder: Path, clock: Clock) -> None:
    """Keys again and again, some deleted, some in a transaction; waits until the cleaner has been there."""
    sender = transactional(bootstrap, topic)
    for turn, end in enumerate(
        (sender.commit_transaction, sender.abort_transaction, sender.commit_transaction)
    ):
        sender.begin_transaction()
        write_keys(sender, topic, turn, clock.step())
        end(SECONDS)
    plain = producer(bootstrap)
    write_keys(plain, topic, 3, clock.step())
    wait_until_cleaned(plain, topic, folder, clock.step())


def write_keys(sender: Producer, topic: str, turn: int, timestamp: int) -> None:
    """Keys from twice the turn on, one of them deleted."""
    for number in range(2 * turn, KEYS):
        value = None if number == 5 + turn else f"turn {turn} {number}"
        sender.produce(topic, value, b"key %d" % number, timestamp=timestamp)
    assert sender.flush(SECONDS) == 0


def wait_until_cleaned(sender: Producer, topic: str, folder: Path, timestamp: int) -> int:
    """Begin a new segment; wait until all before is cleaned, and give the offset that reaches to."""
    ends: list[int] = []
    sender.produce(
        topic, b"x", b"last", timestamp=timestamp, on_delivery=lambda _, sent: ends.append(sent.offset())
    )
    assert sender.flush(SECONDS) == 0
    checkpoint = folder / "cleaner-offset-checkpoint"
    line = f"{topic} 0 {ends[0]}"
    wait_for(lambda: checkpoint.exists() and line in checkpoint.read_text().splitlines(), SECONDS)
    return ends[0]


class Reader:
    """Consumers of one broker; they stay, since their beginning takes longer than the reading."""

    def __init__(self, bootstrap: str) -> None:
        self._any, self._committed = (
            Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": "unused",
                    "log_level": 2,
                    "isolation.level": isolation,
                    "enable.partition.eof": True,
                    "enable.auto.commit": False,
                    "fetch.wait.max.ms": 5,
                    "auto.offset.reset": "error",
                }
            )
            for isolation in ("read_uncommitted", "read_committed")
        )

    def served(self, topic: str) -> Served:
        """Everything a client can see of a topic of one partition."""
        wait_for(lambda: self._has_leader(topic))
        bounds = self._any.get_watermark_offsets(TopicPartition(topic, 0), SECONDS)
        records, _ = _read(self._any, topic)
        committed, stable_end = _read(self._committed, topic)
        positions = [
            self._any.offsets_for_times([TopicPartition(topic, 0, timestamp)], SECONDS)[0].offset
            for timestamp in sorted({record[1][1] + more for record in records[::3] for more in (0, 1)})
        ]
        return Served(records, committed, stable_end, bounds, positions)

    def _has_leader(self, topic: str) -> bool:
        """Return True if the topic has leaders: a broker reports its start before it leads all partitions."""
        try:
            self._any.get_watermark_offsets(TopicPartition(topic, 0), SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
            return False
        return True

    def wait_for_markers(self, topic: str, stable_end: int) -> None:
        """Wait for the transactions that have ended: a commit is answered before its markers are written."""
        partition = TopicPartition(topic, 0)
        wait_for(lambda: self._committed.get_watermark_offsets(partition, SECONDS)[1] == stable_end)

    def close(self) -> None:
        """Close the consumers."""
        self._any.close()
        self._committed.close()


def _read(consumer: Consumer, topic: str) -> tuple[list[Any], int]:
    """(records, offset of the end as this consumer sees it)."""
    start, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), SECONDS)
    consumer.assign([TopicPartition(topic, 0, start)])
    records = list(_until_end(consumer))
    (position,) = consumer.position([TopicPartition(topic, 0)])
    consumer.unassign()
    return records, position.offset


def _until_end(consumer: Consumer) -> Iterator[Any]:
    while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
        yield (
            message.offset(),
            message.timestamp(),
            message.key(),
            message.value(),
            message.headers(),
            message.leader_epoch(),
        )
    assert message is not None, "no end came"
    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
