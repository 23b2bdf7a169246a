"""Client quotas of a cluster: in Kafka's znodes, known to all brokers, and the same after an election."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from logd.broker_server import BrokerServer
from logd.metadata.zookeeper.znodes import paths, znodes
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.metadata.zookeeper.sessions import opened
from tests.support.client_quotas import alter_quotas
from tests.support.raw_client import RawClient

CLIENT = "users/ANONYMOUS/clients/c"


async def with_client(server: BrokerServer, client_id: str, work: Callable[[RawClient], None]) -> None:
    """Call `work` with a client of the broker, in a thread: the broker has this one."""

    def run() -> None:
        with closing(RawClient(server.broker.endpoint.port, client_id=client_id)) as client:
            work(client)

    await asyncio.to_thread(run)


def know(brokers: Brokers, configs: Mapping[str, Mapping[str, str]]) -> bool:
    return all(each.broker.image.entity_configs == configs for each in brokers.up.values())


def create_too_much(client: RawClient) -> None:
    topics = [CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in ("t", "u")]
    answer = client.request(CreateTopicsRequest(topics=topics), 7)
    codes = {each.name: each.error_code for each in answer.topics}
    assert codes == {"t": ErrorCode.NONE, "u": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert answer.throttle_time_ms > 100_000


async def test_quotas_of_two_brokers(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, 2) as brokers:
        other = next(each for each in brokers.up.values() if each is not brokers.controller)
        entity = {"user": "ANONYMOUS", "client-id": "c"}
        await with_client(
            other, "admin", lambda client: alter_quotas(client, entity, {"controller_mutation_rate": 0.01})
        )
        await brokers.until(lambda: know(brokers, {CLIENT: {"controller_mutation_rate": "0.01"}}))
        await with_client(other, "c", create_too_much)
        async with opened(zookeeper) as session:
            assert await session.children("/config/users/ANONYMOUS/clients") == ["c"]
            data, _ = await session.get(f"/config/{CLIENT}")
            assert znodes.decode_config("", data) == {"controller_mutation_rate": "0.01"}
            # Another program, such as Kafka's tools before 4.0, writes to ZooKeeper itself.
            changed = {"request_percentage": "50"}
            await session.set(f"/config/{CLIENT}", znodes.encode_config(changed))
            notification = znodes.encode_config_change(CLIENT)
            await session.create(paths.CONFIG_CHANGE_PREFIX, notification, sequential=True)
            await brokers.until(lambda: know(brokers, {CLIENT: changed}))
        await brokers.until(lambda: any(each.broker.catalog.controller for each in brokers.up.values()))
        await brokers.stop(next(id_ for id_, each in brokers.up.items() if each is brokers.controller))
        await brokers.until(lambda: any(each.broker.catalog.controller for each in brokers.up.values()))
        assert know(brokers, {CLIENT: changed})
        (left,) = brokers.up.values()
        await with_client(
            left, "admin", lambda client: alter_quotas(client, entity, {"request_percentage": None})
        )
        await brokers.until(lambda: know(brokers, {}))
        assert left.broker.client_quotas is None
