"""Kafka's OffsetsApiIntegrationTest against our worker: sinks' offsets on the cluster that a sink reads from.

| Kafka's method | our test |
|---|---|
| testGetNonExistentConnectorOffsets, testAlterOffsets... | test_a_connector_that_is_not_there |
| test{Get,Alter,Reset}SinkConnectorOffsets | test_a_sinks_offsets[worker] |
| test{Get,Alter,Reset}SinkConnectorOffsetsOverriddenConsumerGroupId | test_a_sinks_offsets[group] |
| test{Get,Alter,Reset}SinkConnectorOffsetsDifferentKafkaClusterTargeted | test_a_sinks_offsets[cluster] |
| test{Alter,Reset}SinkConnectorOffsetsZombieSinkTasks | test_sink_offsets: test_a_group_with_members_... |
| testAlterSinkConnectorOffsetsInvalidRequestBody | test_connector_offsets, test_a_sinks_offsets |
| testAlterSourceConnectorOffsetsInvalidRequestBody | rest/test_app: test_offsets_that_are_none_are_refused |
| testAlterOffsetsNonStoppedConnector | test_connector_offsets: test_only_a_stopped_... |
| test{Get,Alter,Reset}SourceConnectorOffsets | cli/test_standalone_rest, test_connector_offsets |
| ...CustomOffsetsTopic, ...ExactlyOnceSupportEnabled (in part) | test_exactly_once_source |

Not here: sources with another cluster (Kafka keeps an offset topic of their own there, ours the worker's).
The worker is a standalone one; a worker of a group answers by the same code (`connect/runtime/service.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from connect.api import SinkConnector, SinkTask
from connect.errors import BadRequest, NotFound
from connect.herder import TargetState
from connect.runtime import Worker
from connect.runtime.standalone_service import StandaloneService
from kafka_client import Admin, Client, NewTopic, Producer
from tests.support.logd_process import LogdProcess
from tests.support.waiting import SECONDS, until

EXTERNALLY = "However, if this connector manages offsets externally, they will need to be manually"
COUNT = 10
"""Records in the topic, which has one partition."""


class QuietTask(SinkTask):
    """A task that forgets its records."""

    def put(self, records) -> None:
        """Do nothing."""


class QuietSink(SinkConnector):
    """A sink whose answer to `alter_offsets` is in its config."""

    task_class = QuietTask

    def alter_offsets(self, config, offsets) -> bool:
        return config.get("alter.offsets.result") == "true"


@asynccontextmanager
async def service_of(kit) -> AsyncIterator[StandaloneService]:
    async with Worker(kit.config()) as worker:
        yield StandaloneService(worker)


async def offsets_become(service: StandaloneService, name: str, *offsets: int) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            shown = (await service.connector_offsets(name))["offsets"]
            if [each["offset"]["kafka_offset"] for each in shown] == list(offsets):
                return
            await asyncio.sleep(0.05)


async def stop(service: StandaloneService, name: str) -> None:
    await service.set_target(name, TargetState.STOPPED)
    await until(lambda: service.connector_status(name)["tasks"] == [])


async def test_a_connector_that_is_not_there(kit):
    async with service_of(kit) as service:
        for request in (
            service.connector_offsets("no"),
            service.alter_offsets("no", [({}, {})]),
            service.reset_offsets("no"),
        ):
            with pytest.raises(NotFound):
                await request


@pytest.mark.parametrize("place", ["worker", "group", "cluster"])
async def test_a_sinks_offsets(kit, logd, topic, tmp_path_factory, place):
    if place != "cluster":
        await sink_offsets_are_shown_altered_and_reset(kit, logd.bootstrap, topic, place)
        return
    with LogdProcess(tmp_path_factory.mktemp("other")) as other:
        await sink_offsets_are_shown_altered_and_reset(kit, other.bootstrap, topic, place)
    async with Client(logd.bootstrap) as client:
        assert topic not in await Admin(client).list_topics()


async def sink_offsets_are_shown_altered_and_reset(kit, bootstrap: str, topic: str, place: str) -> None:
    config = {"connector.class": f"{__name__}:QuietSink", "topics": topic, "tasks.max": "1"}
    config["value.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    if place == "group":
        config["consumer.override.group.id"] = f"{topic}-own"
    if place == "cluster":
        config |= {f"{role}.override.bootstrap.servers": bootstrap for role in ("consumer", "admin")}
    async with Client(bootstrap) as client, Producer(client) as producer, service_of(kit) as service:
        admin, name = Admin(client), f"sink-{topic}"
        await admin.create_topics([NewTopic(topic, 1, 1)])
        for _ in range(COUNT):
            await producer.send_and_wait(topic, b"value")
        await service.create_connector(name, config)
        await offsets_become(service, name, COUNT)
        group = f"{topic}-own" if place == "group" else f"connect-{name}"
        assert [each.offset for each in (await admin.list_group_offsets(group)).values()] == [COUNT]
        await stop(service, name)
        partition = {"kafka_topic": topic, "kafka_partition": 0}
        message = await service.alter_offsets(name, [(partition, {"kafka_offset": 5})])
        assert "have been altered successfully" in message
        assert f"{EXTERNALLY} altered" in message
        await offsets_become(service, name, 5)
        with pytest.raises(
            BadRequest, match="partition for a sink connector offset cannot be null or missing"
        ):
            await service.alter_offsets(name, [(None, None)])
        await service.put_config(name, {**config, "alter.offsets.result": "true"})
        message = await service.alter_offsets(name, [(partition, {"kafka_offset": 3})])
        assert message == "The offsets for this connector have been altered successfully"
        await offsets_become(service, name, 3)
        await service.set_target(name, TargetState.STARTED)
        await offsets_become(service, name, COUNT)
        await stop(service, name)
        for _ in range(2):  # a second reset is no error
            assert "have been reset successfully" in await service.reset_offsets(name)
            await offsets_become(service, name)
        assert await admin.list_group_offsets(group) == {}
        await service.set_target(name, TargetState.STARTED)
        await offsets_become(service, name, COUNT)
