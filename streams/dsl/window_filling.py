"""`filled`: a stream by windows without gaps, and the store that has each key's last window."""

from __future__ import annotations

from streams.dsl.options import Materialized, keeping
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.processors.windowing.fill_windows import Filling, fill_windows
from streams.serdes import TimeWindowed
from streams.serdes.window_start_value import StartAndValue
from streams.state import StoreSpec

PREFIX = "KSTREAM-FILL-WINDOWS-"


def filled(stream: Stream, filling: Filling, name: str | None, materialized: Materialized) -> Stream:
    """Add the node; the stream that leaves it."""
    if filling.limit < 1:
        raise TopologyError(f"fill_windows(): limit is {filling.limit}, it must be 1 or more")
    if filling.advance_ms is not None and filling.advance_ms <= 0:
        raise TopologyError(f"fill_windows(): advance is {filling.advance_ms}, it must be longer than 0")
    builder = stream.builder
    store = materialized.name or builder.names.store(PREFIX)
    node = builder.names.node(PREFIX, name)
    key_serde = stream.key_serde
    if not isinstance(key_serde, TimeWindowed):
        raise TopologyError(
            f"{node} fills gaps between windows: it is for a table of windows as a stream, with its keys"
        )
    value_serde = builder.value_serde(node, materialized.value_serde, stream.value_serde)
    builder.graph.add_store(
        StoreSpec(
            name=store,
            kind="key_value",
            key_serde=key_serde.inner,
            value_serde=StartAndValue(value_serde),
            **keeping(materialized.persistent),
            logged=materialized.logging,
            cached=False,
            changelog_config=materialized.changelog_config,
        )
    )
    return stream.then_named(node, fill_windows(store, filling), (store,))
