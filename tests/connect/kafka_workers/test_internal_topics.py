"""Kafka's InternalTopicsIntegrationTest against our worker, which runs in the test's process.

| Kafka's method | our test |
|---|---|
| testCreateInternalTopicsWithDefaultSettings | test_topics_are_created_once_with_the_settings |
| testFailToCreateInternalTopicsWithMoreReplicasThanBrokers | test_more_replicas_than_brokers_are_refused |
| testFailToStartWhenInternalTopicsAreNotCompacted | test_topics_that_are_not_compacted_are_refused |
| testStartWhenInternalTopicsCreatedManuallyWithCompactForBrokersDefaultCleanupPolicy | test_..._by_default |

Left out: testCreateInternalTopicsWithFewerReplicasThanBrokers. It needs two brokers, and asks of Connect what
the first test asks: that the replication factor of the settings is the topic's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from connect.distributed import DistributedConfig, DistributedWorker
from connect.errors import ConfigError, ConnectError
from kafka_client import Admin, Client, NewTopic
from kafka_client.http.client import HttpClient
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

KINDS = ("config", "offset", "status")
COMPACT = {"cleanup.policy": "compact"}


@pytest.fixture
async def admin(logd: LogdProcess) -> AsyncIterator[Admin]:
    async with Client(logd.bootstrap) as client:
        yield Admin(client)


def settings(bootstrap: str, group: str, factor: str | None = "1") -> dict[str, str]:
    """Return a worker's settings, with a replication factor or, for None, the default one of three."""
    own = {"bootstrap.servers": bootstrap, "group.id": group}
    for kind in KINDS:
        own[f"{kind}.storage.topic"] = f"{group}-{kind}"
        if factor is not None:
            own[f"{kind}.storage.replication.factor"] = factor
    return own


def worker_of(own: dict[str, str]) -> DistributedWorker:
    request = HttpClient(timeout=10).request
    return DistributedWorker(
        DistributedConfig.parse(own), url="http://127.0.0.1:8083", worker_id="w", request=request
    )


async def run(own: dict[str, str]) -> None:
    """Start a worker, wait until it is in its group, and end it."""
    async with worker_of(own) as worker:
        await until(lambda: worker.group.assignment is not None)


async def shapes(admin: Admin, own: dict[str, str]) -> dict[str, tuple[int, int, str | None]]:
    """Return the partitions, replicas and cleanup policy of the group's topics, of those that exist."""
    listed, result = await admin.list_topics(), {}
    for kind in KINDS:
        name = own[f"{kind}.storage.topic"]
        if name in listed:
            partitions = listed[name].partitions
            policy = (await admin.describe_configs(name, keys=["cleanup.policy"]))["cleanup.policy"].value
            result[kind] = (len(partitions), len(partitions[0].replicas), policy)
    return result


@pytest.mark.parametrize(
    ("more", "offset_partitions", "status_partitions"),
    [
        ({}, 25, 5),
        ({"offset.storage.partitions": "3", "status.storage.partitions": "-1"}, 3, 1),
    ],
    ids=["defaults", "settings"],
)
async def test_topics_are_created_once_with_the_settings(
    logd, admin, topic, more, offset_partitions, status_partitions
):
    own = settings(logd.bootstrap, topic) | more
    expected = {
        "config": (1, 1, "compact"),
        "offset": (offset_partitions, 1, "compact"),
        "status": (status_partitions, 1, "compact"),
    }
    for _ in range(2):
        await run(own)
        assert await shapes(admin, own) == expected


async def test_more_replicas_than_brokers_are_refused(logd, admin, topic):
    own = settings(logd.bootstrap, topic, None)
    with pytest.raises(ConnectError, match=rf"{topic}-offset \(offset.storage.topic\) cannot be created.*"):
        await run(own)
    assert await shapes(admin, own) == {}


async def test_topics_that_are_not_compacted_are_refused(logd, admin, topic):
    own = settings(logd.bootstrap, topic)
    policies = [{"cleanup.policy": "delete"}, {"cleanup.policy": "delete,compact"}, {}]
    for kind, configs in zip(KINDS, policies, strict=True):
        await admin.create_topics(
            [NewTopic(f"{topic}-bad-{kind}", 1, 1, configs), NewTopic(f"{topic}-{kind}", 1, 1, COMPACT)]
        )
    bad = {f"{kind}.storage.topic": f"{topic}-bad-{kind}" for kind in KINDS}
    for kind in KINDS:
        with pytest.raises(ConfigError, match=rf"\.storage\.topic={topic}-bad-.* cleanup.policy to compact"):
            await run(own | bad)
        with pytest.raises(ConfigError, match=rf"{kind}\.storage\.topic={topic}-bad-{kind}"):
            await run(own | {f"{kind}.storage.topic": f"{topic}-bad-{kind}"})
        del bad[f"{kind}.storage.topic"]
    await run(own)


async def test_topics_made_by_hand_on_a_broker_that_compacts_by_default(topic, tmp_path: Path):
    broker = {"log.cleanup.policy": "compact", "auto.create.topics.enable": "false"}
    with LogdProcess(tmp_path / "logd", broker) as process:
        own = settings(process.bootstrap, topic)
        async with Client(process.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(f"{topic}-{kind}", 1, 1) for kind in KINDS])
            await run(own)
            assert await shapes(Admin(client), own) == dict.fromkeys(KINDS, (1, 1, "compact"))
