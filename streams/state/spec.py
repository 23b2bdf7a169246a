"""What a store is: declared while the topology is built, made real once per task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from streams.serdes import serde_for

StoreKind = Literal["key_value", "window", "session", "join_window", "outer_join", "waiting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """A store's name, types and keeping.

    `key_serde`, `value_serde`: serdes, or types that stand for some (`SerdeLike`); serdes once it is made.
    `persistent`: RocksDB, otherwise memory. `logged`: has a changelog topic, otherwise a restart loses it.
    `cached`: downstream hears of the last value per key at each commit, otherwise of every update.
    `window_size_ms`: window stores only. `retention_ms`: window and session stores, those of joins too; a
    window is forgotten once one is put that starts `retention_ms` later, a session once one is put that ends
    so much later. `lookback_ms`: a cached store goes on to find so much of what is past its retention.
    `by_time`: what there is can be looked up by time alone, as aggregations need that tell of windows when
    they close.
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
    changelog_config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("key_serde", "value_serde"):  # a type stands for its serde here too
            object.__setattr__(self, name, serde_for(getattr(self, name)))

    @property
    def changelog(self) -> str:
        """The changelog topic's name, before the application id is put in front."""
        return f"{self.name}-changelog"
