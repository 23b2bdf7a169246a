"""A log directory written by a real Apache Kafka, with everything in it a log can have.

`tests.support.released_folder` has logd write the same.

    KAFKA_LIBS=... python -m tests.support.kafka_folder

writes the one kept in tests/golden/kafka again, and what Kafka's tool prints of it in tests/golden/dumped.
Tests use `fill` for a folder of their own.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.support.apache_kafka import ApacheKafka
from tests.support.java import dump_log_segments
from tests.support.logd_process import LogdProcess
from tests.support.waiting import wait_for

GOLDEN = Path(__file__).parent.parent / "golden"
FOLDER = GOLDEN / "kafka"
DUMPED = GOLDEN / "dumped"

SETTINGS = {"log.cleaner.backoff.ms": 50}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS = 100.0
SEGMENT_MS = 300

COMMITTED = [f"{codec} commit {number} größe" for codec in CODECS for number in range(10)]
ABORTED = [f"{codec} abort {number} größe" for codec in CODECS for number in range(10)]
OPEN = ["open 0", "open 1"]
PLAIN = ["plain", "plain too", "append time"]
"""The values in topic `all`, by what became of them."""


def fill(kafka: ApacheKafka | LogdProcess, protocols: Sequence[str] = ("classic", "consumer")) -> None:
    """Write topics `all` and `compacted`, restart in the midst, and stop the broker cleanly.

    `protocols` are those of the groups that commit offsets.
    """
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 2})
    small = {"segment.ms": str(SEGMENT_MS), "index.interval.bytes": "100"}
    compacted = {**small, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    topics = [NewTopic("all", 1, 1, config=small), NewTopic("compacted", 1, 1, config=compacted)]
    for future in admin.create_topics(topics).values():
        future.result()
    for codec in CODECS:
        _write_transactions(kafka, codec)
    _compact(kafka)
    kafka.stop()
    kafka.start()
    _write_plain(kafka, admin)
    for protocol in protocols:
        _consume(kafka, protocol)
    producer = _transactional(kafka, "left-open")
    producer.begin_transaction()
    _produce(producer, *OPEN)
    kafka.stop()
    del producer


def _transactional(kafka: ApacheKafka | LogdProcess, name: str, **settings: object) -> Producer:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "log_level": 2, "transactional.id": name, **settings}
    )
    producer.init_transactions(SECONDS)
    return producer


def _produce(producer: Producer, *values: str) -> None:
    for number, value in enumerate(values):
        headers = [("h", b"x"), ("none", None)] if number % 2 else None
        producer.produce("all", value, b"key %d" % number if number != 2 else None, headers=headers)
    assert producer.flush(SECONDS) == 0


def _write_transactions(kafka: ApacheKafka | LogdProcess, codec: str) -> None:
    producer = _transactional(kafka, codec, **{"compression.type": codec, "linger.ms": 5})
    committed = [value for value in COMMITTED if value.startswith(f"{codec} ")]
    aborted = [value for value in ABORTED if value.startswith(f"{codec} ")]
    for values, end in (
        (committed[:5], producer.commit_transaction),
        (aborted, producer.abort_transaction),
        (committed[5:], producer.commit_transaction),
    ):
        producer.begin_transaction()
        _produce(producer, *values)
        end(SECONDS)
    _transactional(kafka, codec)  # returns once the last marker is written, which no later one shall overtake
    _wait_for_segment()


def _compact(kafka: ApacheKafka | LogdProcess) -> None:
    """Keys written again and again, some deleted; waits until the cleaner has been there."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 2})
    for turn in range(3):
        for number in range(2 * turn, 10):
            value = None if number == 5 and turn == 2 else f"turn {turn} {number}"
            producer.produce("compacted", value, b"key %d" % number)
        assert producer.flush(SECONDS) == 0
        _wait_for_segment()
    producer.produce("compacted", b"last", b"last")
    producer.flush(SECONDS)
    checkpoint = kafka.data / "cleaner-offset-checkpoint"
    wait_for(lambda: checkpoint.exists() and "compacted 0 24" in checkpoint.read_text(), SECONDS)


def _wait_for_segment() -> None:
    """Whatever is written next begins a new segment."""
    time.sleep(SEGMENT_MS / 1000 + 0.05)


def _write_plain(kafka: ApacheKafka | LogdProcess, admin: AdminClient) -> None:
    """Write records without transactions, at the latest epoch of all. The last one has log append time."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("all", PLAIN[0], timestamp=1_700_000_000_000)
    producer.flush(SECONDS)
    producer.produce("all", PLAIN[1])
    producer.produce("all", None, b"tombstone")
    producer.flush(SECONDS)
    change = ConfigEntry(
        "message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, "all", incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    producer.produce("all", PLAIN[2])
    producer.flush(SECONDS)


def _consume(kafka: ApacheKafka | LogdProcess, protocol: str) -> None:
    """Commit offsets as a member of a group, with and without a transaction, and leave the group."""
    settings = {"group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    group = f"group-{protocol}"
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, **settings})
    consumer.subscribe(["all"])
    assert consumer.consume(1, SECONDS)
    consumer.commit(asynchronous=False)
    producer = _transactional(kafka, f"offsets-{protocol}")
    producer.begin_transaction()
    offsets = [TopicPartition("all", 0, 7, metadata="größe")]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
    producer.commit_transaction(SECONDS)
    consumer.close()


def files(folder: Path) -> Iterator[Path]:
    """Yield the golden folder's files: those of logs that have records, and the folder's checkpoints."""
    for log in sorted(folder.iterdir()):
        if log.is_file() and log.name not in (".lock", "bootstrap.checkpoint"):
            yield log
        elif log.name != "__cluster_metadata-0" and any(path.stat().st_size for path in log.glob("*.log")):
            yield from sorted(path for path in log.iterdir() if path.suffix != ".deleted")


def dumps(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """(name, arguments of the dump command) that show all of a folder; paths begin with the logs' names."""
    for log in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        decoder = {
            "__consumer_offsets": "--offsets-decoder",
            "__transaction_state": "--transaction-log-decoder",
        }
        names = sorted(
            f"{log}/{path.name}" for path in (folder / log).iterdir() if path.suffix[1:] in SUFFIXES
        )
        option = decoder.get(log.rpartition("-")[0], "--print-data-log")
        yield f"{log}.txt", [option, "--files", ",".join(names)]


SUFFIXES = ("log", "index", "timeindex", "txnindex", "snapshot")


def main() -> None:
    """Write the golden folder again."""
    with tempfile.TemporaryDirectory() as name, ApacheKafka(Path(name), SETTINGS) as kafka:
        fill(kafka)
        for folder in (FOLDER, DUMPED):
            shutil.rmtree(folder, ignore_errors=True)
        for path in files(kafka.data):
            target = FOLDER / path.relative_to(kafka.data)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    DUMPED.mkdir()
    for name, arguments in dumps(FOLDER):
        (DUMPED / name).write_text(dump_log_segments(*arguments, cwd=FOLDER).stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
