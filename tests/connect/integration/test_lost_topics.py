"""Internal topics of a group that lose their records while its workers run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic, TopicPartition
from tests.support.connect_group import ConnectGroup
from tests.support.depth import deep

VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
NAMES = ("busy", "idle")


@pytest.fixture
def group(logd, tmp_path: Path) -> Iterator[ConnectGroup]:
    group = ConnectGroup(logd.bootstrap, tmp_path)
    yield group
    for url in list(group.workers):
        group.end(url)


async def make_again(bootstrap: str, topic: str, partitions: int) -> None:
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.delete_topics([topic])
        await admin.create_topics([NewTopic(topic, partitions, 1, {"cleanup.policy": "compact"})])


async def delete_records(bootstrap: str, topic: str, partitions: int) -> None:
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.incremental_alter_configs(topic, {"cleanup.policy": "delete"})
        await admin.delete_records({TopicPartition(topic, number): -1 for number in range(partitions)})
        await admin.incremental_alter_configs(topic, {"cleanup.policy": "compact"})


LOSSES = pytest.mark.parametrize("loss", [make_again, delete_records])


def start(group: ConnectGroup, topic: str) -> list[str]:
    """Start two workers with a connector that runs and one that is paused."""
    urls = [group.start(), group.start()]
    config = {"connector.class": VERIFIABLE, "topic": topic, "throughput": "20"}
    for name in NAMES:
        group.do("POST", f"{urls[0]}/connectors", {"name": name, "config": config})
    # A connector that is paused before its tasks are planned has none.
    group.wait_until(lambda: states(group, urls[0], "idle") == ["RUNNING"] * 2)
    group.do("PUT", f"{urls[0]}/connectors/idle/pause")
    group.wait_until(lambda: all(are_right(group, url) for url in urls))
    return urls


def states(group: ConnectGroup, url: str, name: str) -> list[str]:
    status = group.status(url, name)
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])] if status else []


def are_right(group: ConnectGroup, url: str) -> bool:
    return states(group, url, "busy") == ["RUNNING"] * 2 and states(group, url, "idle") == ["PAUSED"] * 2


def lose(loss, group: ConnectGroup, urls: list[str], kind: str, partitions: int) -> None:
    """Have a topic lose its records, and wait until all workers have noticed."""
    topic = group.settings[f"{kind}.storage.topic"]
    asyncio.run(loss(group.settings["bootstrap.servers"], topic, partitions))
    for url in urls:
        group.wait_until(lambda url=url: f"topic {topic} ({kind}.storage.topic) has lost" in log(group, url))


def log(group: ConnectGroup, url: str) -> str:
    return group.log(url).read_text()


def is_healthy(group: ConnectGroup, url: str) -> bool:
    return group.ask("GET", f"{url}/health")[0] == 200


def restart(group: ConnectGroup, urls: list[str]) -> str:
    """End all workers, and return a new one that has nothing but the topics."""
    for url in urls:
        assert group.end(url, signal.SIGTERM) == 0
    return group.start()


@LOSSES
def test_connectors_outlive_the_records_of_their_config_topic(group: ConnectGroup, topic: str, loss):
    urls = start(group, topic)
    lose(loss, group, urls, "config", 1)
    group.wait_until(lambda: any("they are written again" in log(group, url) for url in urls))
    group.wait_until(lambda: all(is_healthy(group, url) for url in urls))
    assert all(are_right(group, url) for url in urls)
    config = {"connector.class": VERIFIABLE, "topic": topic, "throughput": "20"}
    group.do("PUT", f"{urls[1]}/connectors/late/config", config)
    group.wait_until(lambda: all(states(group, url, "late") == ["RUNNING"] * 2 for url in urls))
    url = restart(group, urls)
    group.wait_until(lambda: are_right(group, url) and states(group, url, "late") == ["RUNNING"] * 2)


@deep
@LOSSES
def test_statuses_outlive_the_records_of_their_topic(group: ConnectGroup, topic: str, loss):
    urls = start(group, topic)
    lose(loss, group, urls, "status", 2)
    third = group.start()
    group.wait_until(lambda: are_right(group, third))
    group.do("PUT", f"{urls[0]}/connectors/busy/pause")
    for url in (*urls, third):
        group.wait_until(lambda url=url: states(group, url, "busy") == ["PAUSED"] * 2)
        assert group.do("GET", f"{url}/connectors/busy/topics") == {"busy": {"topics": [topic]}}


@deep
@LOSSES
def test_a_source_goes_on_without_the_records_of_its_offset_topic(group: ConnectGroup, topic: str, loss):
    urls = start(group, topic)

    def offset(url: str) -> int:
        offsets = group.do("GET", f"{url}/connectors/busy/offsets")["offsets"]
        return offsets[0]["offset"]["seqno"] if offsets else -1

    group.wait_until(lambda: offset(urls[0]) > 5)
    lose(loss, group, urls, "offset", 2)
    before = offset(urls[0])
    assert before > 5, "a worker keeps in memory what the topic has lost"
    group.wait_until(lambda: all(offset(url) > before for url in urls))
    url = restart(group, urls)
    group.wait_until(lambda: are_right(group, url))
    assert offset(url) > before, "the offsets of a running source are in the topic again"
