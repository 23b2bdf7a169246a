"""Settings of single operators, as dataclasses to share, or as keywords of the operator itself.

``builder.stream("flights", key_serde=str, value_serde=Flight)`` and
``builder.stream("flights", Consumed(key_serde=str, value_serde=Flight))`` are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from streams.errors import TopologyError
from streams.graph import OffsetReset, StreamPartitioner, TimestampExtractor, checked
from streams.processors.windowing.windows import Duration, milliseconds
from streams.serdes import SerdeLike

Options = TypeVar("Options")


def options_with(options: Options | None, default: type[Options], **keywords: Any) -> Options:
    """Return the caller's options, or default ones, with the keywords that are not None in their place."""
    base = default() if options is None else options
    changes = {name: value for name, value in keywords.items() if value is not None}
    return dataclasses.replace(base, **changes) if changes else base  # type: ignore[type-var]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """How a topic is read. ``timestamp_extractor(key, value, record_timestamp)`` gives the event time, ms."""

    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    timestamp_extractor: TimestampExtractor | None = None
    reset: OffsetReset | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """How a topic is written. ``partitioner(topic, key, value, partitions)`` gives a record's partition, or
    several; None leaves it to the key's hash, and none at all drops the record.
    """

    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    partitioner: StreamPartitioner | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned:
    """How a stream goes through a topic; the name is the topic's. ``partitions``: as many as the stream's
    sources unless given. ``partitioner``: as of `Produced`.
    """

    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    partitions: int | None = None
    partitioner: StreamPartitioner | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.partitions is not None and self.partitions < 1:
            raise TopologyError(f"a topic has 1 partition or more, not {self.partitions}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """How records are printed: ``[label]: `` and ``mapper(key, value)``, to stdout or to a file of this path.

    The label is the name of the node above unless given; the mapper gives ``key, value``.
    """

    label: str | None = None
    mapper: Callable[[Any, Any], str] | None = None
    path: str | Path | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """How records are grouped; the name goes to the repartition topic, if one is needed."""

    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """How a stream is joined; serdes are those of the stream, for the repartition topic, if one is needed.

    `grace`: with a versioned table only, which must keep its history so long; records wait so long, by stream
    time, for what the table learns of their time (KIP-923).
    """

    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    name: str | None = None
    grace: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoined:
    """How two streams are joined, and how their records of the last windows are kept.

    `value_serde` is the left stream's, `other_value_serde` the right one's. `name` goes to the nodes and to
    repartition topics, `store` to the stores and their changelogs. `persistent`, `logging`,
    `changelog_config`: as in `Materialized`.
    """

    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    other_value_serde: SerdeLike | None = None
    name: str | None = None
    store: str | None = None
    persistent: bool | None = None
    logging: bool = True
    changelog_config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized:
    """How a table is kept.

    `name`: the store's; also names the changelog topic, and the repartition topic if one is needed.
    `persistent`: RocksDB, or if False memory; what ``default.dsl.store`` says unless given. `logging`: keep
    a changelog topic, so that a restart elsewhere has the state; `changelog_config` goes to that topic.
    `caching`: downstream hears of the last value per key at each commit, otherwise of every update.
    `retention`: window stores only, by stream time; at least window size and grace, which is also the
    default.
    `history_retention`: makes it a versioned store (KIP-889), which needs a name; what a key was is known so
    far back of stream time, and updates may come so late. `segment_interval`: versions are forgotten by
    segments so long; Kafka's choice unless given. Versioned stores have no cache.
    """

    name: str | None = None
    key_serde: SerdeLike | None = None
    value_serde: SerdeLike | None = None
    persistent: bool | None = None
    logging: bool = True
    caching: bool = True
    retention: Duration | None = None
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    history_retention: Duration | None = None
    segment_interval: Duration | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            checked(self.name)
        if self.history_retention is not None and self.name is None:
            raise TopologyError("Materialized: a versioned store (history_retention=) needs a name=")
        if self.segment_interval is not None and self.history_retention is None:
            raise TopologyError(
                "Materialized: segment_interval= is for versioned stores: say history_retention="
            )
        if self.segment_interval is not None and milliseconds(self.segment_interval) < 1:
            raise TopologyError(f"Materialized: segment_interval is {self.segment_interval}, less than 1 ms")


def keeping(persistent: bool | None) -> dict[str, Any]:
    """Return the fields of a store's spec that follow from the option `persistent`."""
    return {"persistent": persistent is not False, "by_default": persistent is None}


def as_materialized(store: str | Materialized | None) -> Materialized:
    """Return the store's options: a name alone means a store of that name with default settings."""
    return store if isinstance(store, Materialized) else Materialized(name=store)
