"""Retention where a transaction is open: what goes, and where the last stable offset is then.

As Apache Kafka has it, an open transaction keeps no segment: its records go with their segment, and nobody
reads past the log start offset before it has ended. Each step is held to Kafka itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_client.records import decode_records, iter_batches
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from logd.broker.topics.configs import Operation
from tests.logd.api.test_configs import TOPIC, alter
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.java import needs_kafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.raw_transaction import Writer
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

QUICK = {
    "log.retention.check.interval.ms": 50,
    "log.initial.task.delay.ms": 10,
    "log.segment.delete.delay.ms": 10,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 2,
}
NOW = 1_700_000_000_000
COMMITTED = 1
SEGMENT = 1 << 20
"""The smallest segment size of Apache Kafka."""
RECORDS = 6
END = RECORDS + 1


class Offsets(NamedTuple):
    """Log start, last stable offset and high watermark."""

    start: int
    stable: int
    high: int


def offsets(client: RawClient, topic: str) -> Offsets:
    answer = client.fetch(topic, RECORDS, max_wait_ms=1, isolation_level=COMMITTED)
    assert answer.error_code == 0
    return Offsets(answer.log_start_offset, answer.last_stable_offset, answer.high_watermark)


def committed(client: RawClient, topic: str) -> list[int]:
    """Return the offsets that a consumer of committed records gets, from the log's start on."""
    record_offsets: list[int] = []
    position = offsets(client, topic).start
    while True:
        answer: Any = client.fetch(topic, position, max_wait_ms=1, isolation_level=COMMITTED)
        assert answer.error_code == 0
        if not answer.records:
            return record_offsets
        for at, header in iter_batches(answer.records):
            if not header.is_control:
                record_offsets += [record[0] for record in decode_records(answer.records, at)]
            position = header.next_offset


def filled(client: RawClient, topic: str) -> Writer:
    """Write an open transaction's record, then `RECORDS` others that take more than half a segment each."""
    wait_until_coordinated(client)
    writer = Writer.begin(client, f"writer-of-{topic}")
    writer.add_partition(topic, 0)
    assert writer.produce(topic, 0) == 0
    for number in range(1, RECORDS + 1):
        record = (NOW + number, b"k%d" % number, b"x" * (SEGMENT // 2), ())
        assert client.produce(topic, [record]).error_code == 0
    return writer


def wait_until_coordinated(client: RawClient) -> None:
    """Wait until the transaction coordinator's topic is created and loaded."""
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=["any"])
    wait_for(lambda: client.request(find, 6).coordinators[0].error_code == 0)
    begin = InitProducerIdRequest(transactional_id="any", transaction_timeout_ms=60_000)
    wait_for(lambda: client.request(begin, 4).error_code == 0)


def check(broker: LogdProcess | ApacheKafka, again: Callable[[], None] = lambda: None) -> None:
    """Run the checks; `again` is called where the broker may be started again."""
    for commit in (True, False):
        check_ending(broker, f"t-{commit}".lower(), again, commit=commit)


def check_ending(
    broker: LogdProcess | ApacheKafka, topic: str, again: Callable[[], None], *, commit: bool
) -> None:
    with RawClient(broker.port) as client:
        create_topic(broker, topic, {"segment.bytes": str(SEGMENT), "retention.ms": "-1"})
        # Apache Kafka's broker leads a moment after the answer.
        wait_for(lambda: client.fetch(topic, 0, max_wait_ms=1).error_code == 0)
        writer = filled(client, topic)
        assert offsets(client, topic) == Offsets(0, 0, END)
        assert committed(client, topic) == []
        alter(client, TOPIC, topic, ("retention.bytes", Operation.SET, str(2 * SEGMENT)))
        wait_for(lambda: offsets(client, topic).start > 0)
        alter(client, TOPIC, topic, ("retention.bytes", Operation.SET, "-1"))
        bounds = offsets(client, topic)
        assert 0 < bounds.start == bounds.stable < bounds.high == END
        assert committed(client, topic) == []
    again()
    with RawClient(broker.port) as client:
        assert offsets(client, topic) == bounds
        wait_until_coordinated(client)
        writer._replace(client=client).end(commit=commit)
        wait_for(lambda: offsets(client, topic).stable == END + 1)
        assert offsets(client, topic) == Offsets(bounds.start, END + 1, END + 1)
        assert committed(client, topic) == list(range(bounds.start, END))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), QUICK) as broker:
        yield broker


@needs_kafka
def test_what_is_expected_is_what_kafka_does(kafka: ApacheKafka) -> None:
    check(kafka)


@deep
@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_an_open_transaction_keeps_no_segment(tmp_path: Path, ending: str) -> None:
    with LogdProcess(tmp_path, QUICK) as logd:

        def again() -> None:
            # The offset rises before the segment's file is renamed: a broker killed in between has it back.
            first_segments = f"**/t-*/{0:020}.log"
            wait_for(lambda: not list(tmp_path.glob(first_segments)))
            logd.kill() if ending == "kill" else logd.stop()
            logd.start()

        check(logd, again)
