"""Changes of the metadata that come at the same time: each begins where the one before it ended.

AlterConfigs while its topic was being deleted wrote the topic into the journal again, and the next start
brought it back; of two changes of settings that met, the second put back what the first had changed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.alter_configs import AlterableConfig as ReplacedConfig
from kafka_client.wire.messages.alter_configs import AlterConfigsRequest
from kafka_client.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.faults.simulation import NOW, Client, Life, SimulatedBroker, new_disk, repeatable

TOPIC, BROKER = 2, 4
SET, APPEND = 0, 2


def live(tmp_path: Path, *works: Callable[[SimulatedBroker], Awaitable[None]]) -> None:
    """Run a broker once per work, each run on the disk that the last one left."""
    rng = random.Random(1)
    with repeatable(1):
        disk = new_disk(tmp_path / "disk", rng)
        ended_ms = NOW
        for work in works:
            life = Life(disk, rng, began_ms=ended_ms)
            life.run(work)  # type: ignore[arg-type]
            ended_ms, disk.crashed = life.ended_ms, False


async def change(
    broker: SimulatedBroker, kind: int, name: str, key: str, value: str, operation: int = SET
) -> int:
    """Send IncrementalAlterConfigs of one key on a new connection and return the error code."""
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return (await Client(broker).request(request, 1)).responses[0].error_code  # type: ignore[no-any-return]


async def replace(broker: SimulatedBroker, name: str) -> int:
    """Send AlterConfigs on a new connection and return the error code."""
    config = ReplacedConfig(name="retention.ms", value="5")
    resource = ReplacedResource(resource_type=TOPIC, resource_name=name, configs=[config])
    request = AlterConfigsRequest(resources=[resource])
    return (await Client(broker).request(request, 2)).responses[0].error_code  # type: ignore[no-any-return]


async def delete(broker: SimulatedBroker, name: str) -> int:
    """Send DeleteTopics and return the error code."""
    answer = await Client(broker).request(DeleteTopicsRequest(topic_names=[name]), 5)
    return answer.responses[0].error_code  # type: ignore[no-any-return]


async def deleting(broker: SimulatedBroker, name: str) -> asyncio.Future[int]:
    """Start a deletion and return once it is decided, and not written yet."""
    under_way = asyncio.ensure_future(delete(broker, name))
    while not broker.catalog.is_changing:  # noqa: ASYNC110
        await asyncio.sleep(0)
    return under_way


@pytest.mark.parametrize("incremental", [True, False])
def test_settings_changed_while_the_topic_is_deleted(incremental: bool, tmp_path: Path) -> None:
    async def meet(broker: SimulatedBroker) -> None:
        await broker.catalog.create("t", 1, {})
        deletion = await deleting(broker, "t")
        changing = change(broker, TOPIC, "t", "retention.ms", "5") if incremental else replace(broker, "t")
        codes = await asyncio.gather(deletion, changing)
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    async def look(broker: SimulatedBroker) -> None:
        assert "t" not in broker.catalog.topics

    live(tmp_path, meet, look)


def test_a_topic_made_again_is_not_given_the_settings_meant_for_the_one_before(tmp_path: Path) -> None:
    async def meet(broker: SimulatedBroker) -> None:
        await broker.catalog.create("t", 1, {})
        codes = await asyncio.gather(
            await deleting(broker, "t"),
            broker.catalog.create("t", 1, {"segment.ms": "77"}),
            change(broker, TOPIC, "t", "retention.ms", "5"),
        )
        assert codes[::2] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    async def look(broker: SimulatedBroker) -> None:
        assert broker.catalog.topics["t"].image.configs == {"segment.ms": "77"}

    live(tmp_path, meet, look)


def test_two_changes_of_a_topic_both_hold(tmp_path: Path) -> None:
    async def meet(broker: SimulatedBroker) -> None:
        await broker.catalog.create("t", 1, {})
        codes = await asyncio.gather(
            change(broker, TOPIC, "t", "retention.ms", "5"),
            change(broker, TOPIC, "t", "segment.ms", "7"),
            change(broker, TOPIC, "t", "cleanup.policy", "compact", APPEND),
        )
        assert codes == [ErrorCode.NONE] * 3

    async def look(broker: SimulatedBroker) -> None:
        topic = broker.catalog.topics["t"]
        configs = {"retention.ms": "5", "segment.ms": "7", "cleanup.policy": "delete,compact"}
        assert topic.image.configs == configs
        assert (topic.config.retention_ms, topic.config.segment_ms) == (5, 7)

    live(tmp_path, meet, look, look)


@pytest.mark.parametrize("name", ["", "1"])
def test_two_changes_of_broker_settings_both_hold(name: str, tmp_path: Path) -> None:
    async def meet(broker: SimulatedBroker) -> None:
        codes = await asyncio.gather(
            change(broker, BROKER, name, "log.retention.ms", "55555"),
            change(broker, BROKER, name, "message.max.bytes", "77777"),
        )
        assert codes == [ErrorCode.NONE] * 2

    async def look(broker: SimulatedBroker) -> None:
        defaults = broker.config.topic_defaults
        assert (defaults.retention_ms, defaults.max_message_bytes) == (55555, 77777)

    live(tmp_path, meet, look)
