"""The data source's options, as Spark's Kafka source takes them, and the ranges they come to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.errors import ConfigError
from plugins.spark.errors import DataLost
from plugins.spark.log_range import LogRange
from plugins.spark.offset_choice import EARLIEST, LATEST, OffsetBound
from plugins.spark.options import parse_options
from plugins.spark.ranges import within_log
from plugins.spark.settings import PartitionColumn, SparkSettings, SparkSinkConfig, parse_partition_by
from plugins.spark.sink import SparkSinkTask
from plugins.spark.splitting import split_ranges

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a, b"}


def test_defaults() -> None:
    options = parse_options(BASE)
    assert options.topics == ("a", "b")
    assert (options.starting.everywhere, options.ending.everywhere) == (EARLIEST, LATEST)
    assert (options.fail_on_data_loss, options.include_headers) == (True, False)
    assert options.isolation_level == "read_uncommitted"


def test_keys_in_any_case() -> None:
    options = parse_options(
        {
            "KAFKA.BOOTSTRAP.SERVERS": "x:1",
            "subscribepattern": "a.*",
            "FAILONDATALOSS": "False",
            "includeheaders": "true",
        }
    )
    assert (options.pattern, options.fail_on_data_loss, options.include_headers) == ("a.*", False, True)


def test_what_is_named_twice_is_read_once() -> None:
    assert parse_options({**BASE, "subscribe": "a,b, a"}).topics == ("a", "b")
    assigned = parse_options({"kafka.bootstrap.servers": "x:1", "assign": '{"a": [1, 0, 1]}'}).assigned
    assert assigned == {"a": (1, 0)}


def test_a_fetch_need_not_wait() -> None:
    properties = {"kafka.fetch.min.bytes": "0", "kafka.fetch.max.wait.ms": "0"}
    assert parse_options({**BASE, **properties}).fetch == {"fetch_min_bytes": 0, "fetch_max_wait_ms": 0}


def test_the_sink_s_own_reads_are_in_the_rack_its_consumer_is_given() -> None:
    task = SparkSinkTask()
    task.context = SimpleNamespace(client_settings={"client.rack": "r1", "group.id": "g"})  # type: ignore[assignment]
    assert parse_options({**BASE, **task._client_options()}).fetch == {"client_rack": "r1"}


def test_offsets_per_partition() -> None:
    options = parse_options(
        {
            **BASE,
            "startingOffsets": '{"a": {"0": 23, "1": -2}}',
            "endingOffsets": '{"a": {"0": -1, "1": 50}}',
        }
    )
    assert options.starting.each == {("a", 0): OffsetBound("offset", 23), ("a", 1): EARLIEST}
    assert options.ending.each == {("a", 0): LATEST, ("a", 1): OffsetBound("offset", 50)}


def test_times_go_before_offsets() -> None:
    offsets = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a": {"0": 1000}}'}
    assert parse_options({**BASE, **offsets}).starting.each == {("a", 0): OffsetBound("timestamp", 1000)}
    with_time = parse_options({**BASE, **offsets, "startingTimestamp": "5"})
    assert with_time.starting.everywhere == OffsetBound("timestamp", 5)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"subscribePattern": "x"}, "subscribe"),
        ({"subscribe": " ,"}, "subscribe"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "startingOffsets"),
        ({"startingTimestamp": "-1"}, "startingTimestamp"),
        ({"endingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "endingOffsetsByTimestamp"),
        ({"startingOffsets": "latest"}, "startingOffsets"),
        ({"endingOffsets": "earliest"}, "endingOffsets"),
        ({"startingOffsets": "12"}, "startingOffsets"),
        ({"startingTimestamp": "noon"}, "startingTimestamp"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "startingOffsetsByTimestampStrategy"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss"),
        ({"minPartitions": "0"}, "minPartitions"),
        ({"kafka.isolation.level": "none"}, "kafka.isolation.level"),
        ({"kafka.security.protocol": "SASL"}, "kafka.security.protocol"),
        ({"kafka.security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism"),
        ({"kafka.sasl.jaas.confg": "x"}, "kafka.sasl.jaas.confg"),
        ({"kafka.request.timeout.ms": "x"}, "kafka.request.timeout.ms"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
    ],
)
def test_a_bad_option_is_named(changes: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_options({**BASE, **changes})
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("startingOffset", "startingOffsets"),
        ("failondatalos", "failOnDataLoss"),
        ("kafka.isolation.levl", "kafka.isolation.level"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("isolation.level", "kafka.isolation.level"),
        ("includeHeader", "includeHeaders"),
        ("kafka.max.pol.records", "kafka.max.poll.records"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_nearest(key: str, nearest: str) -> None:
    """`startingOffset` read everything, `kafka.isolation.levl` read aborted records, and nobody was told."""
    with pytest.raises(ConfigError, match=f"{nearest}\\?") as caught:
        parse_options({**BASE, key.lower(): "x"})
    assert caught.value.key == key.lower()


def test_an_option_like_no_other_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not an option"):
        parse_options({**BASE, "colour": "red"})


@pytest.mark.parametrize(
    "key",
    [
        "kafka.auto.offset.reset",
        "kafka.enable.auto.commit",
        "kafka.value.deserializer",
        "kafka.key.deserializer",
    ],
)
def test_what_sparks_kafka_source_refuses_is_refused(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_options({**BASE, key: "x"})
    assert caught.value.key == key


def test_options_of_sparks_kafka_source_that_have_no_effect_here_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    others = {"maxOffsetsPerTrigger": "5", "kafka.group.id": "g", "kafka.max.poll.records": "7"}
    parse_options({**BASE, **others, "kafka.my.own.interceptor.key": "x"})
    assert sorted(r.getMessage() for r in caplog.records if r.name.startswith("plugins.")) == [
        "kafka.group.id has no effect here",
        "kafka.max.poll.records has no effect here",
        "kafka.my.own.interceptor.key has no effect here",
        "maxOffsetsPerTrigger has no effect here",
    ]


def test_what_spark_itself_puts_among_the_options_is_no_matter() -> None:
    """Options that Spark adds, as for `load("path")` and `CREATE TABLE … USING millstream`, are ignored."""
    sparks = {"path": "x", "paths": "[]", "owner": "me", "provider": "millstream", "option.subscribe": "a"}
    assert parse_options({**BASE, **sparks}).topics == ("a", "b")


def test_ranges_outside_of_the_log() -> None:
    log_range = LogRange("t", 0, 10, 20)
    assert within_log(log_range, 0, 30, True) == log_range
    for earliest, latest in ((11, 30), (0, 19)):
        with pytest.raises(DataLost):
            within_log(log_range, earliest, latest, True)
    assert within_log(log_range, 12, 18, False) == LogRange("t", 0, 12, 18)
    assert within_log(log_range, 25, 30, False) == LogRange("t", 0, 25, 25)
    assert within_log(log_range, 0, 5, False) == LogRange("t", 0, 5, 5)


def test_one_range_a_partition_and_large_ones_split() -> None:
    ranges = [LogRange("t", 0, 0, 900), LogRange("t", 1, 50, 150), LogRange("t", 2, 7, 7)]
    assert split_ranges(ranges) == ranges[:2]
    assert split_ranges(ranges, max_records=400) == [
        LogRange("t", 0, 0, 300),
        LogRange("t", 0, 300, 600),
        LogRange("t", 0, 600, 900),
        LogRange("t", 1, 50, 150),
    ]
    pieces = split_ranges(ranges, min_partitions=10)
    assert len(pieces) == 10
    assert [p for p in pieces if p.partition == 1] == [LogRange("t", 1, 50, 150)]
    assert split_ranges([LogRange("t", 0, 0, 2)], min_partitions=10) == [
        LogRange("t", 0, 0, 1),
        LogRange("t", 0, 1, 2),
    ]


def test_partition_columns() -> None:
    assert parse_partition_by("month=date_format(timestamp,'yyyy-MM'); carrier") == (
        PartitionColumn(name="month", expression="date_format(timestamp,'yyyy-MM')"),
        PartitionColumn(name="carrier", expression="carrier"),
    )
    with pytest.raises(ValueError, match="semicolons"):
        parse_partition_by("date_format(timestamp,'yyyy-MM')")


CONNECTOR: dict[str, Any] = {"name": "s", "connector.class": "SparkSink", "topics": "t", "path": "/x"}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"path": "s3://bucket/x"}, "path"),
        ({"partition.by": "a b"}, "partition.by"),
        ({"partition.by": "_batch=1"}, "partition.by"),
        ({"value.format": "avro"}, "value.format"),
        ({"table.format": "orc"}, "table.format"),
        ({"max.offsets.per.trigger": "0"}, "max.offsets.per.trigger"),
        ({"topics": ""}, "topics"),
    ],
)
def test_a_bad_setting_of_the_sink_is_named(changes: dict[str, str], key: str) -> None:
    _, (error, *_) = SparkSinkConfig.examine({**CONNECTOR, **changes})
    assert error.key == key


def test_spark_keys_go_to_the_session() -> None:
    raw = {
        **CONNECTOR,
        "spark.master": "local[4]",
        "spark.driver.memory": "2g",
        "spark.sql.ansi.enabled": "true",
    }
    settings = SparkSettings.from_config(raw)
    assert (settings.master, settings.memory) == ("local[4]", "2g")
    assert settings.conf == (("spark.sql.ansi.enabled", "true"),)
    assert SparkSettings.from_config({**raw, "name": "other", "path": "/y"}) == settings


def test_a_password_without_its_prefix_is_refused_without_showing_it() -> None:
    for key in ("sasl.jaas.config", "kafka.sasl.jaas.confg", "ssl.key.pasword"):
        with pytest.raises(ConfigError) as caught:
            parse_options({**BASE, key: "hunter2"})
        assert (caught.value.key, "hunter2" in str(caught.value)) == (key, False)
