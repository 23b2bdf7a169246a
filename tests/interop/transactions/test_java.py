"""The Java client's transactions, in its own programs; KAFKA_LIBS is the folder of Kafka's jars."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafka_client.records import BatchHeader, iter_batches
from logd.dump_log.decoders import decode_offsets, decode_transactions
from logd.dump_log.dump import dump
from logd.dump_log.options import Options
from tests.interop.transactions.clients.base import load
from tests.interop.transactions.conftest import Broker
from tests.interop.transactions.test_semantics import until
from tests.support import java
from tests.support.java import needs_javac, needs_kafka
from tests.support.topics import create_topic

SCENARIOS = ("ends", "many", "fencing", "timeout", "offsets")
COUNT = 1000
SECONDS = 300.0


def headers(broker: Broker, topic: str, partition: int) -> list[BatchHeader]:
    """Return the headers of the batches in a partition's files."""
    (log,) = (broker.folder / "data" / f"{topic}-{partition}").glob("*.log")
    return [header for _, header in iter_batches(log.read_bytes())]


@needs_javac
def test_scenarios(broker: Broker, new_name: Callable[..., str]) -> None:
    """See tests/java/Transactions.java."""
    prefix = new_name("java")
    for name in SCENARIOS:
        create_topic(broker, f"{prefix}-{name}", partitions=3)
    printed = java.run_program("Transactions", broker.bootstrap, prefix)
    assert printed.split() == [word for name in SCENARIOS for word in ("passed", name)]

    # Transaction version 2 (KIP-890): every transaction has a producer epoch of its own, its marker's.
    batches = [header for number in range(3) for header in headers(broker, f"{prefix}-many", number)]
    epochs = sorted(header.producer_epoch for header in batches if not header.is_control)
    assert len(set(epochs)) == len(epochs) == 30
    markers = sorted(header.producer_epoch for header in batches if header.is_control)
    assert markers == [epoch + 1 for epoch in epochs]


@needs_kafka
def test_kafkas_tool_reads_the_internal_topics(
    broker: Broker, new_name: Callable[..., str], tmp_path: Path
) -> None:
    """Line by line as ours does, and every record is one it knows."""
    confluent = load("confluent")
    topic = create_topic(broker, new_name("java"))
    producer = confluent.producer(broker.bootstrap, topic)
    consumer = confluent.consumer(broker.bootstrap, f"group-{topic}", topic)
    producer.begin()
    producer.send(topic, b"value", 0)
    producer.commit()
    until(lambda: len(consumer.poll()), 1)
    for end in (producer.abort, producer.commit):
        producer.begin()
        producer.send(topic, b"value", 0)
        producer.send_offsets(consumer)
        end()
    consumer.close()
    producer.close()
    data = tmp_path / "data"  # of the broker's other tests, something may be written still
    for path in (broker.folder / "data").glob("__*/*.log"):
        (data / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, data / path.parent.name / path.name)
    for name, option in (("offsets", "--offsets-decoder"), ("state", "--transaction-log-decoder")):
        logs = sorted(data.glob(f"__*_{name}-*/*.log"))
        theirs = java.dump_log_segments(option, "--files", ",".join(map(str, logs))).stdout
        out, err = io.StringIO(), io.StringIO()
        decoder = decode_offsets if name == "offsets" else decode_transactions
        assert dump(logs, Options(decoder=decoder, print_data_log=True), out, err), err.getvalue()
        assert out.getvalue().splitlines() == theirs.splitlines()
        assert topic in theirs
        assert not re.search("Error at|Unknown record|isvalid: false|invalid bytes", theirs)


def run(tool: str, *arguments: str) -> list[dict[str, Any]]:
    """Run one of Kafka's verifiable tools and return its output, an object for each line."""
    done = java.run_tool(f"org.apache.kafka.tools.{tool}", *arguments)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def produced(where: Sequence[str], prefix: int) -> list[str]:
    """Write records by VerifiableProducer and return their values, which begin with the prefix."""
    options = ["--topic", "source", "--max-messages", str(COUNT), "--value-prefix", str(prefix)]
    facts = run("VerifiableProducer", *where, *options)
    values = sorted(fact["value"] for fact in facts if fact["name"] == "producer_send_success")
    assert len(values) == COUNT
    return values


class MessageCopier:
    """Kafka's TransactionalMessageCopier, which aborts at random; started again whenever it has ended."""

    def __init__(self, broker: Broker, log: Path) -> None:
        arguments = ["--broker-list", broker.bootstrap, "--input-topic", "source", "--input-partition", "0"]
        arguments += [
            "--output-topic",
            "target",
            "--transactional-id",
            "copier",
            "--consumer-group",
            "copiers",
        ]
        arguments += ["--transaction-size", "50", "--transaction-timeout", "10000"]
        arguments += ["--enable-random-aborts", "--use-group-metadata"]
        self._command = java.command("org.apache.kafka.tools.TransactionalMessageCopier", *arguments)
        self._log = log

    def start(self) -> None:
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_for_progress(self) -> None:
        """Wait until the program has reported copied records twice more."""
        before = self.log.count('"consumed"')
        deadline = time.monotonic() + SECONDS
        while self.log.count('"consumed"') < before + 2:
            assert time.monotonic() < deadline, self.log[-3000:]
            if self.process.poll() is not None:
                assert self.process.returncode != 0, "at its end already"
                self.start()
            time.sleep(0.01)


@needs_kafka
def test_kafkas_own_tools(tmp_path: Path, new_broker: Callable[[Path], Broker]) -> None:
    """VerifiableProducer, TransactionalMessageCopier under kills, VerifiableConsumer."""
    broker = new_broker(tmp_path / "broker")
    with broker:
        for topic in ("source", "target"):
            create_topic(broker, topic)
        where = ["--bootstrap-server", broker.bootstrap]
        values = produced(where, 1)
        copier = MessageCopier(broker, tmp_path / "copier.log")
        copier.start()
        try:
            copier.wait_for_progress()
            copier.kill()
            values = sorted(values + produced(where, 2))  # else there may be nothing left to be copied
            copier.start()
            copier.wait_for_progress()
            broker.kill()
            broker.start()
            deadline = time.monotonic() + SECONDS
            while copier.process.wait(SECONDS) != 0:
                assert time.monotonic() < deadline, copier.log[-3000:]
                copier.start()
        finally:
            copier.kill()

        settings = tmp_path / "consumer.properties"
        settings.write_text("isolation.level=read_committed\n")
        options = [
            "--topic",
            "target",
            "--group-id",
            "readers",
            "--max-messages",
            str(2 * COUNT),
            "--verbose",
        ]
        facts = run("VerifiableConsumer", *where, *options, "--consumer.config", str(settings))
        assert sorted(fact["value"] for fact in facts if fact["name"] == "record_data") == values
        confluent = load("confluent")
        committed = confluent.read(broker.bootstrap, "target", 1, committed=True)
        assert sorted(value.decode() for value in committed) == values
        assert len(confluent.read(broker.bootstrap, "target", 1, committed=False)) > 2 * COUNT
        assert "Traceback" not in broker.log
