"""Every client reads a compacted topic from its beginning to its end.

The story: the cleaner left a batch without records at the end of every segment it wrote. A reader from the
start was given them one by one, ten answers without a record in a row. librdkafka takes such an answer for
a record that did not fit, doubles its fetch size each time, and gave up with MSG_SIZE_TOO_LARGE.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.records import build_batch, decode_records, iter_batches
from tests.interop.transactions.clients.base import LIBRARIES, load
from tests.logd.broker.fetch_bench import Session, running
from tests.support import java
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.other_languages import NODE, PROBE_SECONDS, seen_by
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

SETTINGS = {"log.cleaner.enable": "false", "log.cleaner.backoff.ms": "20"}
RECORDS, KEYS, PER_BATCH = 40_000, 100, 100
"""Sizes of topic `keys`. Its last segment of 1 MB is not cleaned and holds every key."""
PRODUCERS = 2_000
"""Producers of topic `producers`: each writes one record of the same key; its emptied batch has to stay."""
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
FILLER = b"v" * 400


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Yield a broker whose topics were cleaned once, each as a whole."""
    logd = LogdProcess(tmp_path_factory.mktemp("compacted"), SETTINGS).start()
    try:
        _write(logd)
        assert logd.stop() == 0
        logd.overrides["log.cleaner.enable"] = "true"
        logd.start()
        wait_for(lambda: all(f"compacted {name}-0 " in logd.log for name in ("keys", "producers")))
        yield logd
        assert "Traceback" not in logd.log
    finally:
        logd.kill()


def _write(logd: LogdProcess) -> None:
    now = int(time.time() * 1000)
    create_topic(logd, "keys", {**COMPACTED, "segment.bytes": "1000000"})
    create_topic(logd, "producers", {**COMPACTED, "segment.bytes": "50000"})
    with RawClient(logd.port) as client:
        for base in range(0, RECORDS, PER_BATCH):
            numbers = range(base, base + PER_BATCH)
            records = [(now, b"key %d" % (n % KEYS), b"%d " % n + FILLER, ()) for n in numbers]
            assert client.produce("keys", records).error_code == 0
        for n in range(PRODUCERS):
            own = {"producer_id": 1000 + n, "producer_epoch": 0, "base_sequence": 0}
            batch = build_batch([(now, b"same", b"%d " % n + FILLER, ())], **own)
            assert client.produce("producers", batch).error_code == 0
        for n in range(KEYS):
            records = [(now, b"key %d" % n, b"own %d " % n + FILLER, ())]
            assert client.produce("producers", records).error_code == 0


@deep
@pytest.mark.parametrize("committed", [False, True], ids=["uncommitted", "committed"])
@pytest.mark.parametrize("topic", ["keys", "producers"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_from_the_beginning_to_the_end(
    cleaned: LogdProcess, library: str, topic: str, committed: bool
) -> None:
    values = load(library).read(cleaned.bootstrap, topic, 1, committed=committed)
    assert values == sorted(values_in(cleaned, topic))
    if topic == "keys":
        assert {b"%d " % n + FILLER for n in range(RECORDS - KEYS, RECORDS)} <= set(values)
    else:
        assert len(values) == KEYS + 1


@deep
@pytest.mark.timeout(PROBE_SECONDS)
@pytest.mark.parametrize(("topic", "isolation"), [("keys", "uncommitted"), ("producers", "committed")])
@pytest.mark.parametrize("library", ["franz_go", "sarama", "kafkajs"])
def test_other_languages_read_it_in_order(
    cleaned: LogdProcess, request: pytest.FixtureRequest, library: str, topic: str, isolation: str
) -> None:
    if library == "kafkajs":
        program: list[str | Path] = ["node", NODE / "probe.js"]
        environment = {"NODE_PATH": str(request.getfixturevalue("installed"))}
    else:
        program, environment = [request.getfixturevalue(library)], {}
    with RawClient(cleaned.port) as client:
        end = client.fetch(topic, 0).high_watermark
    arguments = [cleaned.bootstrap, "read", topic, str(end), isolation]
    values = seen_by([*program, *arguments], **environment)
    assert values == [value.decode() for value in values_in(cleaned, topic)]


@deep
@java.needs_kafka
@pytest.mark.parametrize(("topic", "isolation"), [("keys", "uncommitted"), ("producers", "committed")])
def test_kafkas_own_consumer_reads_it_in_order(cleaned: LogdProcess, topic: str, isolation: str) -> None:
    expected = [value.decode() for value in values_in(cleaned, topic)]
    done = java.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", cleaned.bootstrap),
        *("--topic", topic),
        "--from-beginning",
        *("--max-messages", str(len(expected))),
        *("--isolation-level", f"read_{isolation}"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("topic", ["keys", "producers"])
def test_no_answer_is_without_a_record(cleaned: LogdProcess, topic: str) -> None:
    """However little is asked for."""
    with RawClient(cleaned.port) as client:
        position, end = 0, client.fetch(topic, 0).high_watermark
        while position < end:
            answer = client.fetch(topic, position, partition_max_bytes=600)
            headers = [header for _, header in iter_batches(answer.records)]
            assert any(header.count for header in headers), f"at offset {position}"
            position = headers[-1].next_offset


def test_a_follower_gets_every_batch(cleaned: LogdProcess, tmp_path: Path) -> None:
    """Empty batches reach a follower too, so it has the producers' last sequences."""
    copied = shutil.copytree(cleaned.folder / "data", tmp_path / "data")
    with running(copied) as bench:
        leading: Any = SimpleNamespace(
            fetches=lambda broker: None,
            fetched=lambda *fetched: None,
            check_removals=lambda *fetched: None,
            throttle=lambda follower: None,
        )
        bench.broker.leading = leading
        answer = Session(bench).partitions({("producers", 0): 0}, replica_id=2)["producers", 0]
        headers = [header for _, header in iter_batches(answer.records)]
        bench.broker.leading = None
    assert [header.base_offset for header in headers] == list(range(len(headers)))
    assert not any(header.count for header in headers)


def values_in(logd: LogdProcess, topic: str) -> list[bytes]:
    """Return all values, decoded by our own client."""
    values: list[bytes] = []
    with RawClient(logd.port) as client:
        position, end = 0, client.fetch(topic, 0).high_watermark
        while position < end:
            answer = client.fetch(topic, position)
            for at, header in iter_batches(answer.records):
                values += [value for offset, _, _, value, _ in decode_records(answer.records, at)]
                position = header.next_offset
    return values


def test_few_files_are_left(cleaned: LogdProcess) -> None:
    """Seventeen segments of 1 MB of which nothing stayed are not seventeen files."""
    folder: Path = cleaned.folder / "data" / "keys-0"
    assert len(list(folder.glob("*.log"))) <= 2
