"""Consumers that read from a follower in their rack (KIP-392), which is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logd.config.replication import RACK_AWARE
from tests.faults.cluster.cluster import Cluster
from tests.support import depth, java
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

COUNT = 50
RDKAFKA = """
import sys
from confluent_kafka import Consumer, TopicPartition
servers, rack = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": servers, "client.rack": rack, "group.id": "g", "log_level": 0})
consumer.assign([TopicPartition("t", 0, 0)])
while True:
    message = consumer.poll(1)
    if message is not None and message.error() is None:
        print(message.value().decode(), flush=True)
"""
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"

pytestmark = depth.deep


def console(bootstrap: str, rack: str) -> list[str]:
    of_topic = ["--bootstrap-server", bootstrap, "--topic", "t", "--partition", "0", "--offset", "earliest"]
    return [*of_topic, "--command-property", f"client.rack={rack}"]


def ours(bootstrap: str, rack: str) -> list[str]:
    return [sys.executable, "-m", "millstream", "kafka-console-consumer", *console(bootstrap, rack)]


def javas(bootstrap: str, rack: str) -> list[str]:
    return java.command(CONSOLE, *console(bootstrap, rack))


def rdkafkas(bootstrap: str, rack: str) -> list[str]:
    return [sys.executable, "-c", RDKAFKA, bootstrap, rack]


@pytest.mark.parametrize("command", [ours, rdkafkas, pytest.param(javas, marks=java.needs_kafka)])
def test_who_read_from_it_goes_on(
    zookeeper: str, tmp_path: Path, command: Callable[[str, str], list[str]]
) -> None:
    of_one = {broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)}
    with Cluster(
        tmp_path / "brokers", zookeeper, of_one=of_one, replica_selector_class=RACK_AWARE
    ) as cluster:
        cluster.create_topic("t", 1)
        leader = cluster.leader("t")
        near = leader % 3 + 1
        produce(cluster, leader, 0)
        lines = tmp_path / "read"
        with lines.open("wb") as out:
            reader = subprocess.Popen(command(cluster.bootstrap, f"rack-{near}"), stdout=out)
        try:
            wait_for(lambda: len(lines.read_text().split()) == COUNT)
            cluster.kill(near)
            produce(cluster, leader, COUNT)
            wait_for(lambda: len(lines.read_text().split()) == 2 * COUNT)
        finally:
            reader.kill()
            reader.wait()
        assert lines.read_text().split() == [str(number) for number in range(2 * COUNT)]
        cluster.start(near)
        cluster.stop()
        cluster.assert_no_tracebacks()


def produce(cluster: Cluster, leader: int, start: int) -> None:
    with RawClient(cluster.brokers[leader].port) as raw:
        for number in range(start, start + COUNT):
            assert raw.produce("t", [(1, None, b"%d" % number, ())], acks=1).error_code == 0
