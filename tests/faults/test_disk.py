"""A disk that takes no more: the folder goes offline and says so; nothing is acknowledged that is not there.

The kernel's limit of file sizes, set for the running broker from outside, plays the full disk: a write
beyond it is cut short and the next one fails, as ENOSPC does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import decode_records, iter_batches
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.depth import deep
from tests.support.full_disk import limit_files
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

FULL_AT = 300_000
VALUE_BYTES = 7_000

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


def value(number: int) -> bytes:
    return b"%d:" % number + b"x" * VALUE_BYTES


def fill(client: RawClient, topic: str) -> tuple[int, int]:
    """Produce until it is refused: (records acknowledged, the error code)."""
    for number in range(10 * FULL_AT // VALUE_BYTES):
        answer = client.produce(topic, [(1, None, value(number), ())])
        if answer.error_code:
            return number, answer.error_code
        assert answer.base_offset == number
    raise AssertionError("the disk is never full")


def read_all(client: RawClient, topic: str) -> list[bytes | None]:
    records = client.fetch(topic, partition_max_bytes=10 * FULL_AT).records
    return [record[3] for pos, _ in iter_batches(records) for record in decode_records(records, pos)]


@deep
def test_nothing_is_acknowledged_that_is_not_written(tmp_path: Path) -> None:
    """Brokers with one log directory stop and say why, and after a restart have all that was acknowledged."""
    logd = LogdProcess(tmp_path)
    with logd:
        topic = create_topic(logd, "t")
        limit_files(logd.pid, FULL_AT)
        with RawClient(logd.port) as client:
            acknowledged, error = fill(client, topic)
        assert error == STORAGE_ERROR
        assert acknowledged > 0
        assert logd.wait() == 1
        assert f"log directory {tmp_path / 'data'} is offline: writing t-0: File too large" in logd.log
        assert logd.log.count("its partitions are not served until a restart") == 1
        assert "Traceback" not in logd.log
        logd.start()
        with RawClient(logd.port) as client:
            assert read_all(client, topic) == [value(number) for number in range(acknowledged)]
            answer = client.produce(topic, [(1, None, b"after", ())])
            assert (answer.error_code, answer.base_offset) == (0, acknowledged)


@deep
def test_other_folders_serve_on(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    with LogdProcess(tmp_path, {"log.dirs": f"{folders[0]},{folders[1]}"}) as logd:
        topics = [create_topic(logd, f"t{number}") for number in range(4)]
        with RawClient(logd.port) as client:
            for topic in topics:
                assert client.produce(topic, [(1, None, b"before", ())]).error_code == 0
            # A partition's folder is there with its first record at the latest.
            homes = {
                topic: next(folder for folder in folders if (folder / f"{topic}-0").exists())
                for topic in topics
            }
            assert set(homes.values()) == set(folders)
            limit_files(logd.pid, FULL_AT)
            # A batch larger than any file may be: not a byte of it fits.
            broken = homes[topics[0]]
            assert client.produce(topics[0], [(1, None, bytes(FULL_AT), ())]).error_code == STORAGE_ERROR
            for topic in topics:
                offline = homes[topic] == broken
                answer = client.produce(topic, [(1, None, b"small", ())])
                assert (answer.error_code, answer.base_offset) == ((STORAGE_ERROR, -1) if offline else (0, 1))
                assert client.fetch(topic, max_wait_ms=1).error_code == (STORAGE_ERROR if offline else 0)
                request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
                (partition,) = client.request(request, 12).topics[0].partitions
                assert partition.offline_replicas == ([1] if offline else [])
        assert logd.log.count("its partitions are not served until a restart") == 1
        assert f"log directory {broken} is offline: " in logd.log
        logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            for topic in topics:
                expected = [b"before"] if homes[topic] == broken else [b"before", b"small"]
                assert read_all(client, topic) == expected
                assert client.produce(topic, [(1, None, b"after", ())]).error_code == 0
        assert "Traceback" not in logd.log


@deep
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_real_producer_meets_a_full_disk(tmp_path: Path, idempotent: bool) -> None:
    """Producers retry until there is room and the broker is started again.

    With idempotence nothing is twice.
    """
    confluent_kafka = pytest.importorskip("confluent_kafka")
    total = 100
    logd = LogdProcess(tmp_path)
    with logd:
        topic = create_topic(logd, "t")
        limit_files(logd.pid, FULL_AT)
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": logd.bootstrap,
                "enable.idempotence": idempotent,
                "batch.num.messages": 3,
                "reconnect.backoff.max.ms": 200,
                "metadata.recovery.strategy": "none",
                "log_level": 0,
            }
        )
        delivered: dict[int, int] = {}

        def on_delivery(error: object, message: object) -> None:
            assert error is None, error
            number = int(message.value().partition(b":")[0])  # type: ignore[attr-defined]
            delivered[number] = message.offset()  # type: ignore[attr-defined]

        for number in range(total):
            producer.produce(topic, value(number), on_delivery=on_delivery)
        while logd.is_running or not delivered:  # the broker may have ended before its answers are read
            producer.poll(0.05)
        before = dict(delivered)
        assert 0 < len(before) < total
        logd.start()
        assert producer.flush(100) == 0
        with RawClient(logd.port) as client:
            values = read_all(client, topic)
        assert all(values[offset] == value(number) for number, offset in delivered.items())
        if idempotent:
            assert values == [value(number) for number in range(total)]
        else:
            assert set(values) == {value(number) for number in range(total)}
