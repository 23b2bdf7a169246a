"""What a store is: declared while the topology is built, made real once per task."""

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
"""Stores that are laid out in segments of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """A store's name, types and keeping.

    `key_serde`, `value_serde`: serdes, or types that stand for some (`SerdeLike`); serdes once it is made.
    `persistent`: RocksDB, otherwise memory; `by_default` if nobody has said so, and ``default.dsl.store`` may
    say otherwise. `logged`: has a changelog topic, otherwise a restart loses it.
    `cached`: downstream hears of the last value per key at each commit, otherwise of every update.
    `window_size_ms`: window stores only. `retention_ms`: window and session stores, those of joins too; a
    window is forgotten once one is put that starts `retention_ms` later, a session once one is put that ends
    so much later. `lookback_ms`: a cached store goes on to find so much of what is past its retention.
    `by_time`: what there is can be looked up by time alone, as aggregations need that tell of windows when
    they close. `source_topic`: of a table's store without a changelog, the topic that it is restored from.
    `history_retention_ms`: versioned stores only, which need it; how far back of stream time the versions of
    a key are known, and how late one may come. `segment_interval_ms`: they are forgotten by segments so
    long; 0 for Kafka's choice. Versioned stores are never cached.
    """

    name: str
    kind: StoreKind
    key_serde: Any
    value_serde: Any
    persistent: bool = True
    logged: bool = True
    cached: bool = True
    window_size_ms: int = 0
    retention_ms: int = 0
    lookback_ms: int = 0
    by_time: bool = False
    history_retention_ms: int | None = None
    segment_interval_ms: int = 0
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    source_topic: str | None = None
    by_default: bool = False

    def __post_init__(self) -> None:
        for name in ("key_serde", "value_serde"):  # a type stands for its serde here too
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
        """Whether it has what a key was at earlier times as well (KIP-889)."""
        return self.kind == "versioned_key_value"

    def of_topic(self, topic: str) -> StoreSpec:
        """The store whose bytes go to this topic, where serdes write them for it."""
        key, value = self.key_serde, self.value_serde
        key_of, value_of = key.of_topic(topic, is_key=True), value.of_topic(topic, is_key=False)
        if key_of is key and value_of is value:
            return self
        return replace(self, key_serde=key_of, value_serde=value_of)

    @property
    def is_forgotten(self) -> bool:
        """Whether what it has is forgotten by time, a segment at a time."""
        return self.kind in SEGMENTED and self.retention_ms < FOREVER

    @property
    def is_restored(self) -> bool:
        """Whether a restart has its content again: of its changelog, or of the table's own topic."""
        return self.logged or self.source_topic is not None

    @property
    def changelog(self) -> str:
        """The changelog topic's name, before the application id is put in front."""
        return f"{self.name}-changelog"
