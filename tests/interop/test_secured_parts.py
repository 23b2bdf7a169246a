"""Every part against an Apache Kafka that asks for TLS and a login."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from plugins.spark.arrow import read_arrow
from plugins.spark.options import parse_options
from plugins.spark.ranges import resolve_ranges
from tests.support.java import needs_kafka
from tests.support.secured_kafka import PASSWORD, USER, SecuredKafka, jaas

pytestmark = needs_kafka

SECRET = PASSWORD.split()[0]
VALUES = [b"value %d" % number for number in range(100)]
SECONDS = 100


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with SecuredKafka(tmp_path_factory.mktemp("secured") / "kafka") as kafka:
        yield kafka


def login(kafka: SecuredKafka, password: str = PASSWORD) -> dict[str, str]:
    """Kafka's keys for SCRAM over TLS."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": jaas("scram.ScramLoginModule", username=USER, password=password),
        **kafka.trust,
    }


def certificate(kafka: SecuredKafka, folder: Path) -> dict[str, str]:
    """Kafka's keys for a client certificate."""
    store = kafka.authority.issue("client").write_pem(folder / "client.pem")
    return {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        **kafka.trust,
    }


def write(path: Path, properties: dict[str, str], prefix: str = "") -> Path:
    """Append to a properties file."""
    with path.open("a", encoding="utf-8") as file:
        for key, value in properties.items():
            escaped = value.replace("\\", "\\\\")
            file.write(f"{prefix}{key}={escaped}\n")
    return path


def command(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    line: Sequence[str] = [sys.executable, "-m", "millstream", *map(str, words)]
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=SECONDS, cwd=cwd, env={**os.environ, "PYTHONPATH": path}
    )
    assert SECRET not in done.stdout + done.stderr
    return done


def fill(kafka: SecuredKafka, topic: str) -> None:
    async def produce() -> None:
        async with Client(kafka.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(topic, 1, 1)])
            async with BatchProducer(client) as producer:
                await (await producer.send(topic, 0, [(0, b"k", value, ()) for value in VALUES]))

    asyncio.run(produce())


def read(kafka: SecuredKafka, topic: str, count: int) -> list[bytes | None]:
    async def fetch() -> list[bytes | None]:
        values: list[bytes | None] = []
        async with Client(kafka.bootstrap) as client, BatchFetcher(client) as fetcher:
            fetcher.assign({TopicPartition(topic, 0): 0})
            async with asyncio.timeout(SECONDS):
                while len(values) < count:
                    for each in await fetcher.fetch(timeout_ms=1_000):
                        values += [record[3] for record in each.records()]
        return values

    return asyncio.run(fetch())


def test_a_command_with_its_config(kafka: SecuredKafka, tmp_path: Path) -> None:
    config = write(tmp_path / "client.properties", login(kafka))
    listed = ["list", "--bootstrap-server", kafka.at("SASL_SSL")]
    done = command("txn", *listed, "--command-config", config)
    assert (done.returncode, done.stderr) == (0, "")
    before = command("txn", "--command-config", config, *listed)
    assert before.stdout == done.stdout


def test_no_part_shows_the_password_when_it_is_wrong(kafka: SecuredKafka, tmp_path: Path) -> None:
    wrong = login(kafka, PASSWORD + "!")
    config = write(tmp_path / "client.properties", wrong)
    servers = kafka.at("SASL_SSL")
    worker = {"bootstrap.servers": servers, "offset.storage.file.filename": str(tmp_path / "offsets")}
    worker_file = write(write(tmp_path / "worker.properties", worker), wrong)
    connector = write(
        tmp_path / "source.properties",
        {"name": "s", "connector.class": "FileStreamSource", "topic": "t", "file": str(tmp_path / "in")},
    )
    links = {"clusters": "a, b", "a->b.enabled": "true"}
    links |= {f"{alias}.bootstrap.servers": servers for alias in "ab"}
    mm2 = write(write(tmp_path / "mm2.properties", links), wrong)
    verify = ["verify", "--source", servers, "--target", servers, "--topic", "t"]
    for done in (
        command("txn", "--bootstrap-server", servers, "--command-config", config, "list"),
        command("mirror", *verify, "--command-config", config),
        command("mirror", "run", mm2),
        command("connect", "standalone", worker_file, connector, "--log-level", "debug"),
    ):
        assert done.returncode != 0
        assert "SASL SCRAM-SHA-512 login of 'alice'" in done.stderr, done.stderr
        assert "Authentication failed" in done.stderr


def test_a_mirror_between_two_listeners(kafka: SecuredKafka, tmp_path: Path) -> None:
    fill(kafka, "mirrored")
    links = {
        "clusters": "a, b",
        "a.bootstrap.servers": kafka.at("SASL_SSL"),
        "b.bootstrap.servers": kafka.at("MUTUAL"),
        "a->b.enabled": "true",
        "topics": "mirrored",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
    }
    config = write(tmp_path / "mm2.properties", links)
    write(config, login(kafka), "a.")
    write(config, certificate(kafka, tmp_path), "b.")
    done = command("mirror", "run", config, "--until-caught-up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert read(kafka, "a.mirrored", len(VALUES)) == VALUES
    source = write(tmp_path / "source.properties", login(kafka))
    target = write(tmp_path / "target.properties", certificate(kafka, tmp_path))
    servers = ["--source", kafka.at("SASL_SSL"), "--target", kafka.at("MUTUAL")]
    configs = ["--command-config", source, "--target-config", target]
    verified = command("mirror", "verify", *servers, *configs, "--topic", "mirrored", "--alias", "a")
    assert (verified.returncode, "equal, 100 records" in verified.stdout) == (0, True), verified


def test_a_worker_and_a_connector_with_a_login_of_its_own(kafka: SecuredKafka, tmp_path: Path) -> None:
    """Logging in works by SCRAM for the worker, and by PLAIN for the connector's producer."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"".join(value + b"\n" for value in VALUES))
    worker = {
        "bootstrap.servers": kafka.at("SASL_SSL"),
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "value.converter": "string",
        "key.converter": "string",
    }
    worker_file = write(write(tmp_path / "worker.properties", worker), login(kafka))
    source = {
        "name": "files",
        "connector.class": "FilesSource",
        "file": str(lines),
        "format": "text",
        "stop.at.eof": "true",
        "topic": "from-files",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "producer.override.sasl.mechanism": "PLAIN",
        "producer.override.sasl.jaas.config": jaas(
            "plain.PlainLoginModule", username=USER, password=PASSWORD
        ),
    }
    connector = write(tmp_path / "source.properties", source)
    done = command("connect", "standalone", worker_file, connector, "--exit-when-done")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not known" not in done.stderr
    assert len(read(kafka, "from-files", len(VALUES))) == len(VALUES)
    stopped = json.loads(done.stdout.splitlines()[-1])
    assert stopped["event"] == "stopped"


def test_an_application_of_streams(kafka: SecuredKafka, tmp_path: Path) -> None:
    fill(kafka, "streamed")
    (tmp_path / "upper.py").write_text(
        "from streams import StreamsBuilder\n"
        "builder = StreamsBuilder(key_serde=bytes, value_serde=bytes)\n"
        "builder.stream('streamed').map_values(bytes.upper).to('upper')\n"
    )

    async def create() -> None:
        async with Client(kafka.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("upper", 1, 1)])

    asyncio.run(create())
    config = write(tmp_path / "streams.properties", {**login(kafka), "task.timeout.ms": "300000"})
    run = ["run", "upper:builder", "--bootstrap-server", kafka.at("SASL_SSL"), "--application-id", "upper"]
    more = ["--command-config", config, "--override", f"state.dir={tmp_path}", "--exit-when-caught-up"]
    done = command("streams", *run, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "without effect here: task.timeout.ms" in done.stderr
    assert read(kafka, "upper", len(VALUES)) == [value.upper() for value in VALUES]


def test_a_read_of_the_spark_source(kafka: SecuredKafka) -> None:
    fill(kafka, "for-spark")
    options = parse_options(
        {
            "kafka.bootstrap.servers": kafka.at("SASL_SSL"),
            "subscribe": "for-spark",
            **{f"kafka.{key}": value for key, value in login(kafka).items()},
        }
    )
    assert SECRET not in repr(options)
    (log_range,) = asyncio.run(resolve_ranges(options))
    values = [
        value for batch in read_arrow(options, log_range) for value in batch.column("value").to_pylist()
    ]
    assert values == VALUES
