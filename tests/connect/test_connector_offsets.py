"""Offsets as a user reads, changes and resets them (KIP-875): sources, and requests about sinks."""

from __future__ import annotations

import pytest

from connect.errors import BadRequest, ConnectError, DataError, NotFound
from connect.herder import ConfigState
from connect.runtime.connector_offsets import (
    alter_source_offsets,
    check_stopped,
    parse_sink_offsets,
    reset_source_offsets,
    source_offsets,
)
from connect.stores import ConnectorOffsets
from connect.testing import MemoryOffsetStore
from kafka_client import TopicPartition

EXTERNALLY = "However, if this connector manages offsets externally, they will need to be manually"


class Plugin:
    """A plugin's `alter_offsets`: its answer, and what it was called with."""

    def __init__(self, answer: bool | Exception | None = None) -> None:
        self.answer = answer
        self.calls: list[object] = []

    async def __call__(self, offsets) -> bool | None:
        self.calls.append(offsets)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
async def store() -> MemoryOffsetStore:
    store = MemoryOffsetStore()
    for connector, file in (("c", "a"), ("c", "b"), ("other", "a")):
        view = ConnectorOffsets(store, connector)
        await view.commit({view.key({"file": file}): view.encode({"position": 1})})
    await store.put({b"nonsense": b"1"})
    return store


def shown(**positions: int) -> dict:
    return {"offsets": [{"partition": {"file": f}, "offset": {"position": p}} for f, p in positions.items()]}


async def test_a_connectors_offsets_are_shown(store: MemoryOffsetStore):
    assert await source_offsets(store, "c") == shown(a=1, b=1)
    assert await source_offsets(store, "new") == {"offsets": []}


async def test_offsets_are_altered_one_by_one(store: MemoryOffsetStore):
    offsets = [({"file": "a"}, {"position": 7}), ({"file": "b"}, None)]
    plugin = Plugin()
    message = await alter_source_offsets(store, "c", offsets, plugin)
    assert message.startswith("The Connect framework-managed offsets for this connector have been altered")
    assert f"{EXTERNALLY} altered" in message
    assert plugin.calls == [offsets]
    assert await source_offsets(store, "c") == shown(a=7)
    assert await source_offsets(store, "other") == shown(a=1)


async def test_offsets_are_reset_together(store: MemoryOffsetStore):
    plugin = Plugin(True)
    message = await reset_source_offsets(store, "c", plugin)
    assert message == "The offsets for this connector have been reset successfully"
    assert plugin.calls == [[({"file": "a"}, None), ({"file": "b"}, None)]]
    assert await source_offsets(store, "c") == {"offsets": []}
    assert await source_offsets(store, "other") == shown(a=1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (NotImplementedError(), "connector c because it doesn't support external modification of offsets"),
        (ConnectError("no such file"), "no such file"),
    ],
    ids=["no-hook", "refused"],
)
async def test_nothing_changes_if_the_plugin_refuses(store: MemoryOffsetStore, answer, message):
    with pytest.raises(ConnectError, match=message):
        await alter_source_offsets(store, "c", [({"file": "a"}, {"position": 7})], Plugin(answer))
    with pytest.raises(ConnectError, match=message):
        await reset_source_offsets(store, "c", Plugin(answer))
    assert await source_offsets(store, "c") == shown(a=1, b=1)


@pytest.mark.parametrize(
    ("partition", "offset", "error"),
    [
        (None, {}, BadRequest),
        ("a", {}, BadRequest),
        ({}, 5, BadRequest),
        ({}, {"x": float("nan")}, DataError),
    ],
    ids=str,
)
async def test_nonsense_is_refused_before_the_plugin_is_called(store, partition, offset, error):
    plugin = Plugin()
    with pytest.raises(error):
        await alter_source_offsets(store, "c", [(partition, offset)], plugin)
    assert plugin.calls == []


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        (None, None, "The partition for a sink connector offset cannot be null or missing"),
        ({"kafka_topic": "t"}, None, "must contain the keys 'kafka_topic' and 'kafka_partition'"),
        ({"kafka_topic": None, "kafka_partition": 0}, None, "Kafka topic names must be valid strings"),
        ({"kafka_topic": "t", "kafka_partition": None}, None, "Kafka partitions must be valid numbers"),
        ({"kafka_topic": "t", "kafka_partition": "x"}, None, "partition value in the provided offsets: 'x'"),
        ({"kafka_topic": "t", "kafka_partition": 1 << 31}, None, "Partition values for sink connectors need"),
        (
            {"kafka_topic": "t", "kafka_partition": 0},
            {"x": 1},
            "either be null or contain the key 'kafka_offset'",
        ),
        ({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": None}, "'None'"),
        (
            {"kafka_topic": "t", "kafka_partition": 0},
            {"kafka_offset": 1.5},
            "offset value in the provided .*'1.5'",
        ),
        ({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": -1}, "'-1'"),
        ({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": "9" * 5000}, "need to be integers"),
    ],
    ids=str,
)
def test_a_sinks_offsets_are_checked_with_kafkas_messages(partition, offset, message):
    with pytest.raises(BadRequest, match=message):
        parse_sink_offsets([(partition, offset)])


def test_numbers_of_a_sinks_offsets_may_be_texts():
    a, b = ({"kafka_topic": "t", "kafka_partition": number} for number in (0, "1"))
    assert parse_sink_offsets([(a, {"kafka_offset": "5"}), (b, None)]) == {
        TopicPartition("t", 0): 5,
        TopicPartition("t", 1): None,
    }


def test_only_a_stopped_connectors_offsets_change():
    config = ConfigState()
    with pytest.raises(NotFound, match="Connector c not found"):
        check_stopped(config, "c")
    config.apply("connector-c", {"properties": {}})
    config.apply("task-c-0", {"properties": {}})
    config.apply("commit-c", {"tasks": 1})
    for state in ("STARTED", "PAUSED", "STOPPED"):
        config.apply("target-state-c", {"state.v2": state})
        with pytest.raises(BadRequest, match="'PUT' request to the '/connectors/c/stop' endpoint"):
            check_stopped(config, "c")
    config.apply("commit-c", {"tasks": 0})
    check_stopped(config, "c")
