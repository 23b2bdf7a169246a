"""Apache Kafka opens the log directories of stopped and of killed logds, serves their records, and goes on.

Then logd opens what Kafka went on with. KAFKA_LIBS names the folder of Kafka's jars.
"""

from __future__ import annotations

import re
import shutil
import time
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from kafka_client.errors import ErrorCode
from logd.storage.checkpoints import encode_lines, read_offsets
from logd.storage.names import CLEANER_OFFSETS, REMOVAL_OFFSET, parse_partition_directory
from logd.storage.removals import Removals
from tests.interop.handed_over import (
    COMMITTED,
    KEYS,
    SECONDS,
    STEP_MS,
    TOPICS,
    TRIMMED_TO,
    Idempotent,
    Reader,
    Served,
    fill,
    producer,
    send,
    transactional,
    wait_until_cleaned,
    write_keys,
)
from tests.support.apache_kafka import ApacheKafka
from tests.support.java import needs_kafka
from tests.support.kafka_metadata import hand_over
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

SETTINGS = {
    "log.cleaner.backoff.ms": 50,
    "log.flush.offset.checkpoint.interval.ms": 50,
    "transaction.state.log.num.partitions": 5,
}

View = dict[str, Served]


def internal_logs(folder: Path) -> int:
    """Return how many partitions of the two internal topics, of five each, have files."""
    return len([*folder.glob("__consumer_offsets-?"), *folder.glob("__transaction_state-?")])


def view(reader: Reader, prefix: str) -> View:
    return {topic: reader.served(topic) for topic in (f"{prefix}-{name}" for name in TOPICS)}


def check_contents(view: View, prefix: str) -> None:
    """Check that the topics' contents have what this test is about."""
    everything, trimmed = view[f"{prefix}-all"], view[f"{prefix}-trimmed"]
    assert len(everything.committed) < len(everything.records)
    assert trimmed.bounds[0] == TRIMMED_TO == trimmed.records[0][0]
    emptied = view[f"{prefix}-emptied"]
    assert emptied.bounds[0] == emptied.bounds[1] == 36
    cleaned = view[f"{prefix}-compacted"]
    assert cleaned.records == cleaned.committed
    assert len({record[2] for record in cleaned.records}) == len(cleaned.records) == KEYS + 1


def goes_on(kafka: ApacheKafka, reader: Reader, by_hand: Idempotent) -> None:
    """Kafka knows what the producer sent last, and what has to come next."""
    with RawClient(kafka.port) as client:

        def sent(gap: int) -> tuple[int, int]:
            answer = client.produce(by_hand.topic, by_hand.batch(gap))
            return answer.error_code, answer.base_offset

        before = reader.served(by_hand.topic)
        assert sent(0) == (0, by_hand.offset)
        assert sent(4)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert sent(2) == (0, before.bounds[1])
    after = reader.served(by_hand.topic)
    assert after.records[:-2] == before.records
    assert after.committed == before.committed


def appends(kafka: ApacheKafka, reader: Reader, topic: str) -> None:
    """Kafka goes on where an emptied log ends."""
    end = reader.served(topic).bounds[1]
    send(producer(kafka.bootstrap), topic, int(time.time() * 1000), ["new"])
    (record,) = reader.served(topic).records
    assert record[0] == end


def compacts(kafka: ApacheKafka, reader: Reader, topic: str, folder: Path) -> None:
    """Kafka's cleaner cleans what logd's has cleaned."""
    before = reader.served(topic).records
    now = before[-1][1][1]
    sender = producer(kafka.bootstrap)
    write_keys(sender, topic, 1, now + STEP_MS)
    end = wait_until_cleaned(sender, topic, folder, now + 2 * STEP_MS)
    records = reader.served(topic).records
    latest = {key: value for _, _, key, value, _, _ in records}
    assert latest == {key: value for _, _, key, value, _, _ in before} | {
        b"key %d" % number: None if number == 6 else b"turn 1 %d" % number for number in range(2, KEYS)
    }
    cleaned = [record for record in records if record[0] < end]
    assert len({record[2] for record in cleaned}) == len(cleaned)


def takes_transactions_over(kafka: ApacheKafka, reader: Reader, prefix: str) -> None:
    """Check that the next producer of the transactional id aborts the open transaction, and goes on."""
    topic = f"{prefix}-all"
    before = reader.served(topic)
    heir = transactional(kafka.bootstrap, f"{prefix}-open")
    heir.begin_transaction()
    send(heir, topic, before.records[-1][1][1], ["new"])
    heir.commit_transaction(SECONDS)
    marker = reader.served(topic).records[-1][0] + 1
    reader.wait_for_markers(topic, marker + 1)
    after = reader.served(topic)
    values = [record[3] for record in after.committed]
    assert values[: len(before.committed)] == [record[3] for record in before.committed]
    assert values[-1] == b"new"
    assert not {b"open 0", b"open 1"} & set(values)
    assert after.stable_end == after.bounds[1]


def keeps_groups(kafka: ApacheKafka, prefix: str) -> None:
    group = {"bootstrap.servers": kafka.bootstrap, "group.id": f"{prefix}-group"}
    consumer = Consumer(group)
    (position,) = consumer.committed([TopicPartition(f"{prefix}-all", 0)], SECONDS)
    consumer.close()
    assert (position.offset, position.metadata) == (COMMITTED, "größe")


def check_log(output: str, stopped: Path) -> None:
    """Kafka took the clean folder as it is, and complained of nothing but the gap in `goes_on`."""
    skipped = f"Skipping recovery of {len(TOPICS)} logs from {stopped} since clean shutdown file was found"
    assert skipped in output
    output = re.sub(r"ERROR .*\n.*OutOfOrderSequenceException", "", output)
    assert not re.findall(r"^.*(?:\bERROR\b|corrupt|stray).*$", output, re.IGNORECASE | re.MULTILINE)


@needs_kafka
def test_kafka_takes_over(tmp_path: Path) -> None:
    folders = {prefix: tmp_path / prefix / "data" for prefix in ("killed", "clean")}
    views: dict[str, View] = {}
    by_hand: dict[str, Idempotent] = {}
    removals: dict[str, Path] = {}
    for prefix, folder in folders.items():
        with LogdProcess(folder.parent, {**SETTINGS, "millstream.flush.interval.ms": 100}) as logd:
            by_hand[prefix] = fill(logd, prefix, folder)
            with closing(Reader(logd.bootstrap)) as reader:
                left_open = reader.served(f"{prefix}-all").records[-2][0]
                reader.wait_for_markers(f"{prefix}-all", left_open)
                views[prefix] = view(reader, prefix)
            wait_for(lambda folder=folder: internal_logs(folder) == 10)  # type: ignore[misc]
            if prefix == "clean":
                assert logd.stop() == 0
        check_contents(views[prefix], prefix)
        # What a broker of a cluster has in such a folder besides: Kafka leaves it alone.
        removals[prefix] = folder / f"{prefix}-compacted-0" / REMOVAL_OFFSET
        removals[prefix].write_bytes(encode_lines(["3 4"]))
    for internal in folders["clean"].glob("__*"):
        shutil.rmtree(internal)  # Kafka has one of each, the other folder's

    hand_over(list(folders.values()))
    kafka = ApacheKafka(tmp_path / "kafka", {**SETTINGS, "log.dirs": ",".join(map(str, folders.values()))})
    kafka.data = folders["killed"]
    with kafka:
        with closing(Reader(kafka.bootstrap)) as reader:
            for prefix, folder in folders.items():
                assert view(reader, prefix) == views[prefix]
                goes_on(kafka, reader, by_hand[prefix])
                appends(kafka, reader, f"{prefix}-emptied")
                compacts(kafka, reader, f"{prefix}-compacted", folder)
            takes_transactions_over(kafka, reader, "killed")
            keeps_groups(kafka, "killed")
            views = {prefix: view(reader, prefix) for prefix in folders}
        kafka.stop()
        check_log(kafka.log_without_startup_errors, folders["clean"])
        for path in removals.values():
            cleaner_offsets = read_offsets(path.parent.parent / CLEANER_OFFSETS)
            cleaned_to = cleaner_offsets[parse_partition_directory(path.parent.name)]  # type: ignore[index]
            assert Removals.read(path.parent, cleaned_to, cleaned_to).offset == cleaned_to > 4
        for prefix, folder in folders.items():
            with LogdProcess(folder.parent, SETTINGS) as logd, closing(Reader(logd.bootstrap)) as reader:
                assert view(reader, prefix) == views[prefix]
                assert logd.stop() == 0
                assert not re.search("WARNING|ERROR|Traceback", logd.log), logd.log
