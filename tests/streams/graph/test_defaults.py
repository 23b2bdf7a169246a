"""A properties file's default serdes, timestamp extractor and kind of stores: how they reach a topology."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import pytest

from kafka_client import TopicPartition
from kafka_client.errors import ConfigError
from streams import (
    JoinWindows,
    KafkaStreams,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
    TopologyError,
    log_and_skip_on_invalid_timestamp,
    wallclock_timestamp,
)
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.serdes import Integer, Long, String, serde_for
from streams.state import StoreSpec
from streams.testing import TopologyTestDriver

SERDES = "org.apache.kafka.common.serialization.Serdes$"
EXTRACTORS = "org.apache.kafka.streams.processor."
SUPPLIERS = "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$"
IN_MEMORY = {"default.dsl.store": "in_memory"}


def config_of(properties: dict[str, str]) -> StreamsConfig:
    return StreamsConfig.from_properties(
        {"application.id": "a", "bootstrap.servers": "localhost:1", **properties}
    )


def timed(key: Any, value: Any, timestamp: int) -> int:
    """Return a later timestamp: a program's own extractor."""
    return timestamp + 1000


OWN_SERDE = Integer()

# -- serdes


@pytest.mark.parametrize(
    ("java", "value", "data"),
    [
        ("String", "é", "é".encode()),
        ("Long", 1, bytes(7) + b"\1"),
        ("Integer", 1, bytes(3) + b"\1"),
        ("Short", 1, b"\0\1"),
        ("Double", 1.5, b"\x3f\xf8" + bytes(6)),
        ("Float", 1.5, b"\x3f\xc0\0\0"),
        ("Boolean", True, b"\1"),
        ("UUID", UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
        ("Bytes", b"x", b"x"),
        ("ByteArray", b"x", b"x"),
        ("ByteBuffer", b"x", b"x"),
    ],
)
def test_kafkas_serdes_go_by_their_classes(java: str, value: Any, data: bytes) -> None:
    serde = serde_for(config_of({"default.value.serde": f"{SERDES}{java}Serde"}).default_value_serde)
    assert serde is not None
    assert (serde.serialize(value), serde.deserialize(data)) == (data, value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [(f"{__name__}:OWN_SERDE", Integer), ("streams.serdes:Long", Long), ("builtins:str", String)],
)
def test_ones_own_go_by_module_and_name(name: str, kind: type) -> None:
    assert isinstance(serde_for(config_of({"default.key.serde": name}).default_key_serde), kind)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("default.key.serde", f"{SERDES}VoidSerde", r"module:name.*Serdes\$StringSerde"),
        ("default.value.serde", "com.example.OrderSerde", r"module:name.*Serdes\$StringSerde"),
        ("default.value.serde", "streams.serdes:Avro", "a serde itself"),
        ("default.timestamp.extractor", f"{EXTRACTORS}UsePartitionTime", "module:function.*Wallclock"),
        ("default.dsl.store", "memory", "one of rocksDB, in_memory"),
        ("dsl.store.suppliers.class", "com.example.Stores", "InMemoryDslStoreSuppliers"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_named_with_what_there_is(key: str, value: str, allowed: str) -> None:
    with pytest.raises(ConfigError, match=allowed) as raised:
        config_of({key: value})
    assert (raised.value.key, raised.value.value) == (key, value)


def counts(builder: StreamsBuilder) -> StreamsBuilder:
    builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
    return builder


def test_a_builder_takes_them_from_its_settings(caplog: pytest.LogCaptureFixture) -> None:
    config = config_of(
        {"default.key.serde": f"{SERDES}IntegerSerde", "default.value.serde": f"{SERDES}UUIDSerde"}
    )
    with TopologyTestDriver(counts(StreamsBuilder(config))) as driver:
        driver.pipe("in", b"\0\0\0\1", b"00000000-0000-0000-0000-000000000001", 0)
        assert driver.output_topic("out").read_key_values() == [(1, 1)]
        assert driver.key_value_store("counts").get(1) == 1
    for topology in (counts(StreamsBuilder(config)), counts(StreamsBuilder(config)).build()):
        KafkaStreams(topology, config)
    assert not caplog.records


def test_what_the_program_says_counts_more() -> None:
    config = config_of({"default.key.serde": f"{SERDES}IntegerSerde"})
    builder = StreamsBuilder(config, key_serde=str, value_serde=str)
    assert isinstance(counts(builder).build().source_of("in").key_serde, String)


def test_a_builder_that_does_not_know_them_says_who_would() -> None:
    with pytest.raises(TopologyError, match=r"StreamsBuilder\(config\) takes default.key.serde"):
        StreamsBuilder().stream("in")


@pytest.mark.parametrize("built", [True, False])
def test_serdes_that_came_too_late_are_warned_of(built: bool, caplog: pytest.LogCaptureFixture) -> None:
    builder = counts(StreamsBuilder(key_serde=str, value_serde=str))
    config = config_of({"default.key.serde": f"{SERDES}LongSerde"})
    with caplog.at_level(logging.WARNING):
        KafkaStreams(builder.build() if built else builder, config)
    assert "default.key.serde: without effect on a topology whose serdes are known" in caplog.text


# -- timestamp extractors


@pytest.mark.parametrize(
    ("name", "extractor"),
    [
        (f"{EXTRACTORS}FailOnInvalidTimestamp", None),
        (f"{EXTRACTORS}LogAndSkipOnInvalidTimestamp", log_and_skip_on_invalid_timestamp),
        (f"{EXTRACTORS}WallclockTimestampExtractor", wallclock_timestamp),
        (f"{__name__}:timed", timed),
    ],
)
def test_timestamp_extractors_have_names(name: str, extractor: Any) -> None:
    config = config_of({"default.timestamp.extractor": name})
    assert config.default_timestamp_extractor is extractor


def extractors(topology: Topology) -> dict[str, Any]:
    nodes = topology.nodes.values()
    return {node.topics[0]: node.timestamp_extractor for node in nodes if hasattr(node, "topics")}


@pytest.mark.parametrize("built", [True, False])
def test_inputs_without_an_extractor_get_it(built: bool) -> None:
    """Whenever the topology was built. Repartition topics have their times, and global tables need none."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").group_by(lambda key, value: value, name="by").count()
    builder.stream("own", timestamp_extractor=wallclock_timestamp).foreach(print)
    builder.table("table", store="table")
    builder.global_table("global")
    config = config_of({"default.timestamp.extractor": f"{__name__}:timed"})
    plain = builder.build()
    topology = KafkaStreams(plain if built else builder, config).topology
    assert extractors(topology) == {
        "in": timed,
        "own": wallclock_timestamp,
        "table": timed,
        "global": None,
        "by-repartition": None,
    }
    assert topology.describe() == plain.describe()
    assert set(extractors(plain).values()) == {None, wallclock_timestamp}, "it stays as it was"


def test_a_topology_made_node_by_node_gets_it_too() -> None:
    class Silent(Processor[Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            pass

    topology = Topology(key_serde=str, value_serde=str).add_source("source", "in")
    topology.add_processor("silent", Silent, "source")
    config = config_of({"default.timestamp.extractor": f"{__name__}:timed"})
    assert extractors(KafkaStreams(topology, config).topology) == {"in": timed}


def test_the_wallclock_is_milliseconds() -> None:
    assert 1_600_000_000_000 < wallclock_timestamp("k", "v", 5) < 10_000_000_000_000


@pytest.mark.parametrize("times", [(-1, 5, -1, 6, -1), (-1, -1)])
def test_a_negative_timestamp_is_left_out(times: tuple[int, ...], caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").to("out")
    config = config_of({"default.timestamp.extractor": f"{EXTRACTORS}LogAndSkipOnInvalidTimestamp"})
    topology = builder.build(config)
    (part,) = topology.subtopologies
    task = Task(TaskId(0, 0), part, {}, TaskEnvironment(clock=lambda: 0))
    tp = TopicPartition("in", 0)
    task.add_input(tp, part.sources[0], InputStart(position=0, end=len(times)))
    task.add(tp, [(n, time, b"k", bytes(8), ()) for n, time in enumerate(times)], len(times), len(times))
    with caplog.at_level(logging.WARNING):
        task.process()
    valid = [time for time in times if time >= 0]
    assert [row[0] for row in task.take_output().get("out", [])] == valid
    assert task.queues[tp].position == len(times)
    assert task.metrics[part.sources[0].name].dropped_records_total == len(times) - len(valid)
    assert "in-0 offset 0: left out, its timestamp is -1" in caplog.text
    task.close()


# -- kinds of stores


def stores() -> StreamsBuilder:
    """Return a topology with a store of each kind that settings choose, and stores that choose their own."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    stream, other = builder.stream("in"), builder.stream("other")
    stream.group_by_key().count(store="counts")
    stream.group_by_key().windowed_by(TimeWindows(10)).count(store="windows")
    stream.group_by_key().windowed_by(SessionWindows(10)).count(store="sessions")
    stream.outer_join(other, lambda one, two: one, windows=JoinWindows.of(1000))
    stream.deduplicate(within=10)
    builder.table("table", store=Materialized(name="table", caching=False))
    builder.global_table("global", store="global")
    builder.table("disk", store=Materialized(name="disk", persistent=True))
    builder.table("memory", store=Materialized(name="memory", persistent=False))
    builder.table("versions", store=Materialized(name="versions", history_retention=10))
    builder.add_store(StoreSpec(name="own", kind="key_value", key_serde=str, value_serde=int))
    stream.process(Holder, stores=["own"])
    return builder


class Holder(Processor[Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        pass


def on_disk(topology: Topology) -> set[str]:
    return {name for name, spec in topology.stores.items() if spec.persistent}


@pytest.mark.parametrize(
    "properties", [IN_MEMORY, {"dsl.store.suppliers.class": f"{SUPPLIERS}InMemoryDslStoreSuppliers"}]
)
def test_stores_are_kept_in_memory_where_nothing_else_is_said(properties: dict[str, str]) -> None:
    config = config_of(properties)
    for topology in (stores(), stores().build(), stores().build(config)):
        assert on_disk(KafkaStreams(topology, config).topology) == {"disk", "versions", "own"}


def test_the_suppliers_count_more_than_the_name_of_the_kind() -> None:
    rocksdb = {"dsl.store.suppliers.class": f"{SUPPLIERS}RocksDBDslStoreSuppliers"}
    topology = stores().build(config_of({**IN_MEMORY, **rocksdb}))
    assert on_disk(topology) == set(topology.stores) - {"memory"} == on_disk(stores().build())


def test_an_optimized_topology_gets_them_as_well() -> None:
    config = config_of({**IN_MEMORY, "topology.optimization": "all"})
    assert on_disk(KafkaStreams(stores(), config).topology) == {"disk", "versions", "own"}
