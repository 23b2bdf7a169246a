"""`deduplicated`: a stream without its duplicates, the store that remembers ids, and the topic before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.dsl.options import Materialized, as_materialized, keeping
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.processors.windowing.deduplicate import deduplicate
from streams.processors.windowing.windows import Duration, milliseconds
from streams.serdes import Long, MessagePack, SerdeLike, serde_for
from streams.serdes.key_and_id import KeyAndId
from streams.state import StoreSpec

PREFIX = "KSTREAM-DEDUPLICATE-"


def deduplicated(
    stream: Stream,
    id_of: Callable[[Any, Any], Any] | None,
    within: Duration,
    grace: Duration,
    id_serde: SerdeLike | None,
    name: str | None,
    store: str | Materialized | None,
) -> Stream:
    """Add the node and its store, and return the stream that leaves the node."""
    within_ms, grace_ms = milliseconds(within), milliseconds(grace)
    if within_ms <= 0:
        raise TopologyError(f"deduplicate(): within is {within}, it must be longer than 0")
    if grace_ms < 0:
        raise TopologyError(f"deduplicate(): grace is {grace}, it must not be negative")
    builder = stream.builder
    materialized = as_materialized(store)
    store_name = materialized.name or builder.names.store(PREFIX)
    node = builder.names.node(PREFIX, name)
    key_serde = builder.key_serde(node, materialized.key_serde, stream.key_serde)
    if stream.rekeyed:
        value_serde = builder.value_serde(node, stream.value_serde)
        stream = stream.repartitioned(name or store_name, key_serde, value_serde)
    ids = key_serde if id_of is None else KeyAndId(key_serde, serde_for(id_serde) or MessagePack(Any))
    builder.graph.add_store(
        StoreSpec(
            name=store_name,
            kind="window",
            key_serde=ids,
            value_serde=Long(),
            **keeping(materialized.persistent),
            logged=materialized.logging,
            cached=False,
            retention_ms=_retention_ms(store_name, within_ms + grace_ms + 1, materialized.retention),
            changelog_config=materialized.changelog_config,
        )
    )
    return stream.then_named(
        node, deduplicate(store_name, id_of, within_ms), (store_name,), takes_null_keys=True
    )


def _retention_ms(store: str, needed: int, option: Duration | None) -> int:
    retention = needed if option is None else milliseconds(option)
    if retention < needed:
        raise TopologyError(f"store {store}: retention is {retention} ms, it must be at least {needed} ms")
    return retention
