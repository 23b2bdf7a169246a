"""Parses the options of `format("millstream")`: those of Spark's Kafka source, in any case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kafka_client.errors import ConfigError
from kafka_client.properties import FETCHER, ClientProperties
from plugins.spark.offset_choice import (
    EARLIEST,
    GROUP,
    LATEST,
    OffsetChoice,
    check_batch,
    parse_choice,
    parse_json,
    whole,
)
from plugins.spark.option_names import BATCH_READ, check_names
from plugins.spark.option_values import OptionValues

DEFAULT_POLL_TIMEOUT_MS = 120_000
CLIENT_ID = "millstream-spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Parsed options; exactly one of `topics`, `pattern` and `assigned` is set."""

    bootstrap_servers: str
    topics: tuple[str, ...] | None
    pattern: str | None
    assigned: Mapping[str, tuple[int, ...]] | None
    starting: OffsetChoice
    ending: OffsetChoice
    group_id: str | None
    """The group that a stream commits its progress for; `startingOffsets=group` means its offsets."""
    no_match_is_latest: bool
    fail_on_data_loss: bool
    fail_on_unreadable_batch: bool
    """False if unreadable batches are skipped, with a warning."""
    min_partitions: int | None
    max_records_per_partition: int | None
    include_headers: bool
    poll_timeout_ms: int
    isolation_level: Literal["read_uncommitted", "read_committed"]
    client: Mapping[str, Any]
    """Keyword arguments of `Client`, security among them."""
    fetch: Mapping[str, Any]
    """Keyword arguments of `BatchFetcher`."""


_FETCH = {
    "kafka.fetch.min.bytes": "fetch_min_bytes",
    "kafka.fetch.max.wait.ms": "fetch_max_wait_ms",
    "kafka.fetch.max.bytes": "fetch_max_bytes",
    "kafka.max.partition.fetch.bytes": "max_partition_fetch_bytes",
}

_RACK = {"client.rack": FETCHER["client.rack"]}
_FETCH_LEAST = {"kafka.fetch.min.bytes": 0, "kafka.fetch.max.wait.ms": 0}


def parse_options(options: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a batch read.

    Raises ConfigError with the key, its value and the allowed values.
    """
    check_names(options, BATCH_READ)
    values = OptionValues(options)
    starting = parse_choice(values.by_name, "starting", EARLIEST)
    ending = parse_choice(values.by_name, "ending", LATEST)
    check_batch(starting, ending)
    return read_options(values, starting, ending)


def read_options(values: OptionValues, starting: OffsetChoice, ending: OffsetChoice) -> ReadOptions:
    """Return the options that batches and streams share. Raises ConfigError."""
    topics, pattern, assigned = _subscription(values.by_name)
    group_id = values.get("groupId")
    if starting.everywhere == GROUP and not group_id:
        raise ConfigError("startingOffsets", "group", "set groupId to the group whose offsets are meant")
    isolation = values.get("kafka.isolation.level") or "read_uncommitted"
    if isolation not in ("read_uncommitted", "read_committed"):
        raise ConfigError("kafka.isolation.level", isolation, "read_uncommitted or read_committed")
    of_client = ClientProperties.layered(values.by_name, "kafka.")
    return ReadOptions(
        bootstrap_servers=values.required("kafka.bootstrap.servers"),
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        starting=starting,
        ending=ending,
        group_id=group_id,
        no_match_is_latest=_no_match_is_latest(values.by_name),
        fail_on_data_loss=values.boolean("failOnDataLoss", True),
        fail_on_unreadable_batch=values.boolean("failOnUnreadableBatch", True),
        min_partitions=values.positive("minPartitions"),
        max_records_per_partition=values.positive("maxRecordsPerPartition"),
        include_headers=values.boolean("includeHeaders", False),
        poll_timeout_ms=values.positive("kafkaConsumer.pollTimeoutMs") or DEFAULT_POLL_TIMEOUT_MS,
        isolation_level=isolation,  # type: ignore[arg-type]
        client={"client_id": CLIENT_ID, **of_client.client()},
        fetch={
            name: value
            for key, name in _FETCH.items()
            if (value := values.positive(key, _FETCH_LEAST.get(key, 1))) is not None
        }
        | of_client.arguments(_RACK),
    )


def _subscription(
    values: Mapping[str, str],
) -> tuple[tuple[str, ...] | None, str | None, Mapping[str, tuple[int, ...]] | None]:
    named = [key for key in ("subscribe", "subscribePattern", "assign") if key.lower() in values]
    if len(named) != 1:
        raise ConfigError(
            "subscribe", ", ".join(named), "set exactly one of subscribe, subscribePattern and assign"
        )
    value = values[named[0].lower()]
    if named[0] == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in value.split(",") if topic.strip()))
        if not topics:
            raise ConfigError("subscribe", value, "names no topic")
        return topics, None, None
    if named[0] == "subscribePattern":
        if not value.strip():
            raise ConfigError(named[0], value, "is empty: give a regular expression")
        try:
            re.compile(value)
        except re.error as e:
            raise ConfigError(named[0], value, f"is no regular expression: {e}") from None
        return None, value, None
    assigned = parse_json(named[0], value, _distinct_partitions)
    return None, None, assigned


def _distinct_partitions(parsed: Mapping[str, Iterable[object]]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(dict.fromkeys(map(whole, numbers))) for topic, numbers in parsed.items()}


def _no_match_is_latest(values: Mapping[str, str]) -> bool:
    key = "startingOffsetsByTimestampStrategy"
    strategy = values.get(key.lower(), "error").lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(key, strategy, "error or latest")
    return strategy == "latest"
