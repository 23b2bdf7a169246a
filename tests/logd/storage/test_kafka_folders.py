"""A log directory that Apache Kafka wrote opens here, and one of ours opens there.

The folder kept in tests/golden/kafka is Kafka's; where KAFKA_LIBS is set, a fresh one is made as well.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client.records import Record, decode_records, iter_batches
from logd.config.topic import TopicConfig
from logd.storage import Log, LogDirectory
from tests.support.apache_kafka import ApacheKafka
from tests.support.java import needs_kafka
from tests.support.kafka_folder import ABORTED, CODECS, COMMITTED, FOLDER, OPEN, PLAIN, SETTINGS, fill

NOW = 1_800_000_000_000


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Fill a log directory with the Apache Kafka at hand, and yield its path."""
    kafka = ApacheKafka(tmp_path_factory.mktemp("kafka"), SETTINGS)
    with kafka:
        fill(kafka)
        yield kafka.data


@pytest.fixture(params=["golden", pytest.param("fresh", marks=needs_kafka)])
def kafka_data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    source = FOLDER if request.param == "golden" else request.getfixturevalue("fresh")
    target = tmp_path / "data"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__cluster_metadata-0", ".lock"))
    return target


def open_folder(path: Path) -> LogDirectory:
    return LogDirectory.open(
        path,
        node_id=1,
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        config_for=lambda topic: TopicConfig(retention_ms=-1),
        now_ms=NOW,
        on_offline=lambda reason: pytest.fail(reason),
    )


def records_of(log: Log) -> Iterator[tuple[bool, Record]]:
    """Yield all records of a log, each as (is_control, record)."""
    for chunk in log.reader.batches(log.log_start_offset):
        for position, header in iter_batches(chunk):
            for record in decode_records(chunk, position):
                yield header.is_control, record


@pytest.mark.parametrize("end", ["clean", "killed", "no indexes"])
def test_all_records_are_read(kafka_data: Path, end: str) -> None:
    if end != "clean":
        (kafka_data / ".kafka_cleanshutdown").unlink()
        (kafka_data / "recovery-point-offset-checkpoint").unlink()
    if end == "no indexes":
        for path in kafka_data.rglob("*index"):
            path.unlink()
    folder = open_folder(kafka_data)
    log = folder.logs["all", 0]
    rows = list(records_of(log))
    expected = []
    for codec in CODECS:
        committed = [value for value in COMMITTED if value.startswith(f"{codec} ")]
        aborted = [value for value in ABORTED if value.startswith(f"{codec} ")]
        expected += [*committed[:5], *aborted, *committed[5:]]
    expected += [*PLAIN[:2], None, PLAIN[2], *OPEN]
    values = [record[3] for is_control, record in rows if not is_control]
    assert [value and value.decode() for value in values] == expected
    assert [record[0] for _, record in rows] == list(range(log.log_end_offset))
    assert sum(is_control for is_control, _ in rows) == 3 * len(CODECS)
    assert log.latest_epoch > log.epoch_of(0)
    compacted = [record[2] for _, record in records_of(folder.logs["compacted", 0])]
    assert sorted(compacted) == sorted([b"key %d" % number for number in range(10)] + [b"last"])
    folder.close()


@pytest.mark.parametrize("end", ["clean", "killed"])
def test_transactions(kafka_data: Path, end: str) -> None:
    """Aborted ones are known, the open one holds the last stable offset, and their producers go on."""
    if end == "killed":
        (kafka_data / ".kafka_cleanshutdown").unlink()
        (kafka_data / "recovery-point-offset-checkpoint").unlink()
        for pattern in ("*.snapshot", "*.txnindex"):
            for path in kafka_data.rglob(pattern):
                path.unlink()
    folder = open_folder(kafka_data)
    log = folder.logs["all", 0]
    values = {(record[3] or b"").decode(): record[0] for _, record in records_of(log)}
    aborted = log.reader.aborted(0, log.log_end_offset)
    spans = [(values[f"{codec} abort 0 größe"], values[f"{codec} abort 9 größe"] + 1) for codec in CODECS]
    assert [(entry.first_offset, entry.last_offset) for entry in aborted] == spans
    log.producers.replicated_to(log.log_end_offset)
    assert log.first_unstable_offset == values[OPEN[0]]
    sequences = {
        producer_id: producer.next_sequence for producer_id, producer in log.producers.producers.items()
    }
    assert sorted(sequences.values()) == [2] + [20] * len(CODECS)
    folder.close()


@needs_kafka
@pytest.mark.parametrize("end", ["clean", "killed"])
def test_kafka_opens_it_again(fresh: Path, tmp_path: Path, end: str) -> None:
    """Opened, written to and closed here, the folder goes back to Apache Kafka."""
    from confluent_kafka import Consumer, TopicPartition

    kafka = ApacheKafka(tmp_path / "kafka")
    shutil.copytree(fresh, kafka.data)
    (kafka.data / ".lock").unlink(missing_ok=True)
    folder = open_folder(kafka.data)
    log = folder.logs["all", 0]
    marker = log.producers.producers
    producer_id = next(number for number, some in marker.items() if some.txn_first_offset >= 0)
    log.writer.append_marker(
        producer_id=producer_id,
        producer_epoch=marker[producer_id].epoch,
        commit=False,
        coordinator_epoch=5,
        leader_epoch=log.latest_epoch,
        now_ms=NOW,
    )
    end_offset = log.log_end_offset
    if end == "clean":
        folder.close()
    else:
        log.flusher.flush()
        for some in folder.logs.values():
            some.release()
        folder._lock.release()
    with kafka:
        consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition("all", 0, 0)])
        values = []
        while (message := consumer.poll(100)) is not None and message.error() is None:
            values.append(message.value() and message.value().decode())
        assert message is not None and message.offset() == end_offset
        consumer.close()
        assert values == [*COMMITTED, *PLAIN[:2], None, PLAIN[2]]
        assert "ERROR" not in kafka.log_without_startup_errors
