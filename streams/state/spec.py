"""What a store is: declared while the topology is built, made real once per task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from streams.serdes import Serde

StoreKind = Literal["key_value", "window", "join_window", "outer_join"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """A store's name, types and keeping.

    `persistent`: RocksDB, otherwise memory. `logged`: has a changelog topic, otherwise a restart loses it.
    `cached`: downstream hears of the last value per key at each commit, otherwise of every update.
    `window_size_ms`, `retention_ms`: window stores only, those of joins too; a window is forgotten once
    stream time is `retention_ms` past its start.
    """

    name: str
    kind: StoreKind
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    persistent: bool = True
    logged: bool = True
    cached: bool = True
    window_size_ms: int = 0
    retention_ms: int = 0
    changelog_config: Mapping[str, str] = field(default_factory=dict)

    @property
    def changelog(self) -> str:
        """The changelog topic's name, before the application id is put in front."""
        return f"{self.name}-changelog"
