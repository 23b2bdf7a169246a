"""The declaration of a store, made while the topology is built; each task opens one store of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from streams.errors import TopologyError
from streams.serdes import serde_for
from streams.serdes.windowed import FOREVER

StoreKind = Literal[
    "key_value",
    "window",
    "session",
    "join_window",
    "outer_join",
    "versioned_key_value",
    "join_buffer",
    "waiting",
]
SEGMENTED: frozenset[StoreKind] = frozenset({"window", "session", "join_window"})
"""Stores that are divided into segments of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """A store's name, kind, serdes, retention and durability."""

    name: str
    kind: StoreKind
    key_serde: Any
    """A serde, or a type with a serde (`SerdeLike`), which is replaced by the serde."""
    value_serde: Any
    """The values' serde, or a type with a serde, which is replaced by the serde."""
    persistent: bool = True
    """True: kept in RocksDB; False: in memory."""
    logged: bool = True
    """True: has a changelog topic; False: a restart loses the content."""
    cached: bool = True
    """True: each commit forwards a key's last value; False: every update is forwarded. Never if versioned."""
    window_size_ms: int = 0
    """Window stores only: the length of a window."""
    retention_ms: int = 0
    """Window, session and join stores: how long windows are kept, in stream time.

    A window is deleted after a put of one that starts this much later, a session after one that ends this
    much later.
    """
    lookback_ms: int = 0
    """How much further back than `retention_ms` a cached store still finds windows."""
    by_time: bool = False
    """True: keys can be looked up by time alone, as aggregations that emit on window close need."""
    history_retention_ms: int | None = None
    """Versioned stores only, required: how far back of stream time versions are kept and may be put."""
    segment_interval_ms: int = 0
    """Versioned stores only: the length of the segments by which versions expire; 0 for Kafka's choice."""
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topic."""
    source_topic: str | None = None
    """The topic that a table's store without a changelog is restored from."""
    by_default: bool = False
    """True if `persistent` was not chosen by the user, so that ``default.dsl.store`` may change it."""

    def __post_init__(self) -> None:
        for name in ("key_serde", "value_serde"):  # types are replaced by their serdes
            object.__setattr__(self, name, serde_for(getattr(self, name)))
        if self.is_versioned:
            self._check_history()
            object.__setattr__(self, "cached", False)

    def _check_history(self) -> None:
        if self.history_retention_ms is None:
            raise TopologyError(
                f"store {self.name}: say how far back versions are kept, in history_retention_ms="
            )
        if self.history_retention_ms < 0 or self.segment_interval_ms < 0:
            raise TopologyError(
                f"store {self.name}: history_retention_ms is {self.history_retention_ms} and "
                f"segment_interval_ms {self.segment_interval_ms}, they must not be negative"
            )

    @property
    def is_versioned(self) -> bool:
        """True if the store has a key's earlier values as well (KIP-889)."""
        return self.kind == "versioned_key_value"

    def of_topic(self, topic: str) -> StoreSpec:
        """Return the store with serdes bound to its changelog topic; itself if no serde depends on it."""
        key, value = self.key_serde, self.value_serde
        key_of, value_of = key.of_topic(topic, is_key=True), value.of_topic(topic, is_key=False)
        if key_of is key and value_of is value:
            return self
        return replace(self, key_serde=key_of, value_serde=value_of)

    @property
    def is_forgotten(self) -> bool:
        """True if the store deletes its content by time, a segment at a time."""
        return self.kind in SEGMENTED and self.retention_ms < FOREVER

    @property
    def is_restored(self) -> bool:
        """True if a restart restores the content, from the changelog or from the table's own topic."""
        return self.logged or self.source_topic is not None

    @property
    def changelog(self) -> str:
        """The changelog topic's name without the application id in front."""
        return f"{self.name}-changelog"
