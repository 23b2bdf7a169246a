"""Streams, Connect, mirror and Spark against Apache Kafka, with the commands, configs and code of the pages.

One broker for all of them, and its `flights`, which Connect brings there from a CSV file of our own.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic
from kafka_client.java_properties import parse_properties
from kafka_client.records import Record
from tests.docs.pages import ROOT, blocks
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.waiting import wait_for

ROWS = 1000
CARRIERS = ("AA", "B6", "DL", "UA")
SECONDS = 120.0
SPARK_SECONDS = 480.0

pytestmark = [java.needs_kafka, pytest.mark.timeout(SPARK_SECONDS + SECONDS)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("any-kafka")) as kafka:
        yield kafka


def flights() -> list[dict[str, Any]]:
    """Return the rows of the CSV, and so of the topic: each flight is known by its number."""
    return [
        {"year": 2013, "month": n % 12 + 1, "day": n % 28 + 1, "carrier": CARRIERS[n % 4], "flight": n}
        for n in range(ROWS)
    ]


def config(page: str, containing: str, **changes: object) -> dict[str, str]:
    """Return the page's properties block that contains such a line, with some properties changed."""
    (text,) = [b.text for b in blocks(ROOT / page, "properties") if containing in b.text.splitlines()]
    properties = {key.replace("_", "."): str(value) for key, value in changes.items()}
    return {**parse_properties(text), **properties}


def write(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def millstream(*arguments: object, seconds: float = SECONDS) -> str:
    """Run the command to its end, which has to be a good one; what it printed."""
    line = [sys.executable, "-m", "millstream", *map(str, arguments)]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=seconds)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def connect(bootstrap: str, folder: Path, connector: Mapping[str, str], seconds: float = SECONDS) -> None:
    """`millstream connect standalone`, until the connector has nothing left to do."""
    offsets = folder / "worker.offsets"
    worker = config("docs/connect.md", "# worker.properties", bootstrap_servers=bootstrap)
    files = [
        write(folder / "worker.properties", worker | {"offset.storage.file.filename": str(offsets)}),
        write(folder / "connector.properties", connector),
    ]
    millstream("connect", "standalone", *files, "--exit-when-done", seconds=seconds)


async def _read(bootstrap: str, topic: str) -> list[Record]:
    async with Client(bootstrap) as client:
        tps = (await client.metadata([topic])).partitions([topic])
        ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
        records: list[Record] = []
        async with BatchFetcher(client) as fetcher:
            fetcher.assign(dict.fromkeys(tps, 0))
            while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
                for fetched in await fetcher.fetch(timeout_ms=1000):
                    records += fetched.records()
    return records


def read(bootstrap: str, topic: str) -> list[Record]:
    """Return every record of a topic."""
    return asyncio.run(_read(bootstrap, topic))


@pytest.fixture(scope="module")
def topic(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> str:
    """`flights`, brought there by the page's source connector."""
    folder = tmp_path_factory.mktemp("any-kafka-source")
    lines = [",".join(map(str, flight.values())) for flight in flights()]
    (folder / "flights.csv").write_text("\n".join([",".join(flights()[0]), *lines]) + "\n")
    source = config("docs/parts.md", "# flights.properties", file=folder / "flights.csv", stop_at_eof="true")
    connect(kafka.bootstrap, folder, source)
    return source["topic"]


def test_connect_brings_a_file_in(kafka: ApacheKafka, topic: str) -> None:
    records = read(kafka.bootstrap, topic)
    rows = [json.loads(value or b"") for _, _, _, value, _ in records]
    assert sorted(rows, key=lambda flight: flight["flight"]) == flights()
    assert all(
        key == value["carrier"].encode() for (_, _, key, _, _), value in zip(records, rows, strict=True)
    )

    async def about() -> tuple[int, str | None]:
        async with Client(kafka.bootstrap) as client:
            configs = await Admin(client).describe_configs(topic)
            return (await client.topic(topic)).partition_count, configs["retention.ms"].value

    assert asyncio.run(about()) == (4, "-1")


def test_connect_takes_a_topic_out(kafka: ApacheKafka, topic: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = {"name": "out", "connector.class": "FilesSink", "topics": topic, "path": str(out)}
    connect(kafka.bootstrap, tmp_path, sink)
    rows = [json.loads(line) for path in (out / topic).iterdir() for line in path.read_text().splitlines()]
    assert sorted(rows, key=lambda flight: flight["flight"]) == flights()


def test_the_mirror_copies_and_verifies(kafka: ApacheKafka, topic: str, tmp_path: Path) -> None:
    """From one name of the cluster to another."""
    links = config("docs/mirror.md", "# mm2.properties")
    links |= {f"dc{number}.bootstrap.servers": kafka.bootstrap for number in (1, 2)}
    millstream("mirror", "run", write(tmp_path / "mm2.properties", links), "--until-caught-up")
    options = ("--source", kafka.bootstrap, "--target", kafka.bootstrap, "--alias", "dc1", "--topic", topic)
    output = millstream("mirror", "verify", *options)
    assert f"{ROWS:,}" in output or str(ROWS) in output, output
    assert sorted(read(kafka.bootstrap, f"dc1.{topic}")) == sorted(read(kafka.bootstrap, topic))


LINES = ["to be or not to be", "that is the question", "to sleep perchance to dream"] * 50


def test_streams_counts_words(kafka: ApacheKafka, tmp_path: Path) -> None:
    """Words are counted once by the page's program, which is killed once; all lines are of one window."""

    async def send(lines: list[str]) -> None:
        async with Client(kafka.bootstrap) as client, BatchProducer(client) as producer:
            records = [(1_357_000_000_000, None, line.encode(), ()) for line in lines]
            await (await producer.send("lines", 0, records))

    async def prepare() -> None:
        async with Client(kafka.bootstrap) as client:
            configs = {"retention.ms": "-1"}
            await Admin(client).create_topics([NewTopic(name, 1, 1, configs) for name in ("lines", "words")])

    (text,) = [
        b.text for b in blocks(ROOT / "docs" / "parts.md", "python") if 'application_id="words"' in b.text
    ]
    quick = "commit_interval_ms=100, session_timeout_ms=6000"
    where = f'bootstrap_servers="{kafka.bootstrap}", state_dir="{tmp_path}", {quick}'
    program = tmp_path / "words.py"
    program.write_text(text.replace('bootstrap_servers="localhost:9092"', where))

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, str(program)])

    def counted() -> dict[str, int]:
        records = read(kafka.bootstrap, "words")
        return {(key or b"").decode(): int.from_bytes(value or b"") for _, _, key, value, _ in records}

    async def is_committed(end: int) -> bool:
        async with Client(kafka.bootstrap) as client:
            offsets = await Admin(client).list_group_offsets("words")
            return any(tp.topic == "lines" and offsets[tp].offset == end for tp in offsets)

    asyncio.run(prepare())
    process = start()
    try:
        for times in (1, 2):
            asyncio.run(send(LINES))
            words = Counter(word for line in LINES * times for word in line.split())
            wait_for(lambda words=words: counted() == words, SECONDS)  # type: ignore[misc]
            if times == 1:
                # What it had sent on to the repartition topic, and not committed, it would count twice.
                wait_for(lambda: asyncio.run(is_committed(len(LINES))), SECONDS)
                process.kill()
                process.wait(SECONDS)
                process = start()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait(SECONDS)


@pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None, reason="Spark needs Java, and pyspark"
)
def test_spark_writes_a_table(kafka: ApacheKafka, topic: str, tmp_path: Path) -> None:
    """By the sink, whose executors read by the data source."""
    import pyarrow.parquet as pq

    from plugins.spark.table import ParquetTable

    path = tmp_path / "tables" / "flights"
    sink = config("docs/spark.md", "# flights-table.properties", path=path)
    connect(kafka.bootstrap, tmp_path, sink, SPARK_SECONDS)
    rows = [
        row
        for file in ParquetTable(path).files()
        for row in pq.read_table(path / file.path, partitioning=None).to_pylist()
    ]
    columns = flights()[0].keys()
    flights_read = sorted(
        ({name: row[name] for name in columns} for row in rows), key=lambda flight: flight["flight"]
    )
    assert flights_read == flights()
    assert len({(row["partition"], row["offset"]) for row in rows}) == ROWS
