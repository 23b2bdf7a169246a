"""Parses the options of `format("millstream")`: those of Spark's Kafka source, in any case.

An option chooses offsets per partition as an `OffsetBound`; `ranges` resolves them to offsets in the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from kafka_client.errors import ConfigError
from kafka_client.properties import FETCHER, ClientProperties
from kafka_client.topic_partition import TopicPartition
from plugins.spark.option_names import check_names

_T = TypeVar("_T")

DEFAULT_POLL_TIMEOUT_MS = 120_000


class OffsetBound(NamedTuple):
    """An offset as the user names it: an end of the log, a number, or the first at or after a time in ms."""

    kind: Literal["earliest", "latest", "offset", "timestamp"]
    value: int = -1


EARLIEST = OffsetBound("earliest")
LATEST = OffsetBound("latest")


@dataclass(frozen=True, slots=True)
class OffsetChoice:
    """The bound of every partition: one for all, or one for each, with all partitions named."""

    everywhere: OffsetBound | None = None
    each: Mapping[TopicPartition, OffsetBound] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Parsed options; exactly one of `topics`, `pattern` and `assigned` is set."""

    bootstrap_servers: str
    topics: tuple[str, ...] | None
    pattern: str | None
    assigned: Mapping[str, tuple[int, ...]] | None
    starting: OffsetChoice
    ending: OffsetChoice
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
    check_names(options)
    values = {key.lower(): value for key, value in options.items()}
    of_client = ClientProperties.layered(values, "kafka.")
    topics, pattern, assigned = _subscription(values)
    starting = _choice(values, "starting", EARLIEST)
    ending = _choice(values, "ending", LATEST)
    if starting.everywhere == LATEST:
        raise ConfigError("startingOffsets", "latest", "a batch read may start at earliest or at offsets")
    if ending.everywhere == EARLIEST:
        raise ConfigError("endingOffsets", "earliest", "a batch read may end at latest or at offsets")
    isolation = values.get("kafka.isolation.level", "read_uncommitted")
    if isolation not in ("read_uncommitted", "read_committed"):
        raise ConfigError("kafka.isolation.level", isolation, "read_uncommitted or read_committed")
    return ReadOptions(
        bootstrap_servers=_required(values, "kafka.bootstrap.servers"),
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        starting=starting,
        ending=ending,
        no_match_is_latest=_no_match_is_latest(values),
        fail_on_data_loss=_boolean(values, "failOnDataLoss", True),
        fail_on_unreadable_batch=_boolean(values, "failOnUnreadableBatch", True),
        min_partitions=_positive(values, "minPartitions"),
        max_records_per_partition=_positive(values, "maxRecordsPerPartition"),
        include_headers=_boolean(values, "includeHeaders", False),
        poll_timeout_ms=_positive(values, "kafkaConsumer.pollTimeoutMs") or DEFAULT_POLL_TIMEOUT_MS,
        isolation_level=isolation,  # type: ignore[arg-type]
        client={"client_id": "millstream-spark", **of_client.client()},
        fetch={
            name: value
            for key, name in _FETCH.items()
            if (value := _positive(values, key, _FETCH_LEAST.get(key, 1))) is not None
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
        try:
            re.compile(value)
        except re.error as e:
            raise ConfigError(named[0], value, f"is no regular expression: {e}") from None
        return None, value, None
    assigned = _json(named[0], value, _distinct_partitions)
    return None, None, assigned


def _distinct_partitions(parsed: Mapping[str, Iterable[int]]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(dict.fromkeys(map(int, numbers))) for topic, numbers in parsed.items()}


def _choice(
    values: Mapping[str, str], which: Literal["starting", "ending"], default: OffsetBound
) -> OffsetChoice:
    """Return the chosen bounds. As in Spark, `…Timestamp` overrides `…OffsetsByTimestamp` and `…Offsets`."""
    moment = values.get(f"{which}timestamp")
    if moment is not None:
        return OffsetChoice(everywhere=OffsetBound("timestamp", _moment(f"{which}Timestamp", moment)))
    moments = values.get(f"{which}offsetsbytimestamp")
    if moments is not None:
        return OffsetChoice(each=_each(f"{which}OffsetsByTimestamp", moments, _time_bound))
    offsets = values.get(f"{which}offsets")
    if offsets is None:
        return OffsetChoice(everywhere=default)
    if offsets.lower() in ("earliest", "latest"):
        return OffsetChoice(everywhere=EARLIEST if offsets.lower() == "earliest" else LATEST)
    return OffsetChoice(each=_each(f"{which}Offsets", offsets, _offset_bound))


def _offset_bound(number: int) -> OffsetBound:
    if number < -2:
        raise ValueError
    return {-2: EARLIEST, -1: LATEST}.get(number, OffsetBound("offset", number))


def _time_bound(ms: int) -> OffsetBound:
    if ms < 0:  # -1 and -2 would be the log's ends to the broker
        raise ValueError
    return OffsetBound("timestamp", ms)


def _each(key: str, text: str, bound_of: Callable[[int], OffsetBound]) -> dict[TopicPartition, OffsetBound]:
    return _json(
        key,
        text,
        lambda parsed: {
            TopicPartition(str(topic), int(partition)): bound_of(int(number))
            for topic, numbers in parsed.items()
            for partition, number in numbers.items()
        },
    )


def _json(key: str, text: str, read: Callable[[Any], _T]) -> _T:
    try:
        return read(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        example = '{"topic": [0, 1]}' if key == "assign" else '{"topic": {"0": 23, "1": -2}}'
        raise ConfigError(key, text, f"JSON such as {example} is wanted") from None


def _no_match_is_latest(values: Mapping[str, str]) -> bool:
    key = "startingOffsetsByTimestampStrategy"
    strategy = values.get(key.lower(), "error").lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(key, strategy, "error or latest")
    return strategy == "latest"


def _required(values: Mapping[str, str], key: str) -> str:
    if not values.get(key.lower()):
        raise ConfigError(key, "", "is required")
    return values[key.lower()]


def _boolean(values: Mapping[str, str], key: str, default: bool) -> bool:
    text = values.get(key.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise ConfigError(key, text, "true or false")
    return text == "true"


def _number(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(key, text, "a whole number is wanted") from None


def _moment(key: str, text: str) -> int:
    if (ms := _number(key, text)) < 0:
        raise ConfigError(key, text, "milliseconds since 1970 are wanted")
    return ms


def _positive(values: Mapping[str, str], key: str, least: int = 1) -> int | None:
    text = values.get(key.lower())
    if text is None:
        return None
    number = _number(key, text)
    if number < least:
        raise ConfigError(key, text, f"a number from {least} on is wanted")
    return number
