"""ConnectorTypes: whether connectors are sources or sinks, by their classes, which are loaded in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from connect.errors import MillstreamError
from connect.runtime.blocking_calls import BlockingCalls
from connect.runtime.plugins import connector_class, connector_type, named_version

LOADS_MAX = 8
"""Bound of the loads that have not returned; further ones wait."""
WAIT_SECONDS = 2.0
"""How long a request waits for the load of classes, of which one may hang in its import."""
TYPES_MAX = 10_000
"""Bound of the classes that are remembered."""
UNKNOWN = "unknown"
_Key = tuple[str, ...]


class ConnectorTypes:
    """The types of connector classes that this worker has loaded. Call `learn`, then `of`."""

    def __init__(self) -> None:
        self._types: dict[_Key, str] = {}
        self._loading: dict[_Key, asyncio.Task[None]] = {}
        self._calls = BlockingCalls("connector class", threads_max=LOADS_MAX)

    def of(self, config: Mapping[str, Any]) -> str:
        """Return `source` or `sink`, and `unknown` for a class that is not loaded, or cannot be."""
        return self._types.get(_key(config), UNKNOWN)

    def note(self, config: Mapping[str, Any], type: str) -> None:
        """Remember the type of a config that was checked."""
        if len(self._types) >= TYPES_MAX:
            self._types.clear()
        self._types[_key(config)] = type

    async def learn(self, configs: Iterable[Mapping[str, Any]]) -> None:
        """Load the classes of configs, and return once that is done, or takes long."""
        missing = {key for config in configs if (key := _key(config)) not in self._types and key}
        for key in missing - self._loading.keys():
            self._loading[key] = asyncio.create_task(self._load(key), name=f"load of {key[0]}")
        if missing:
            await asyncio.wait([self._loading[key] for key in missing], timeout=WAIT_SECONDS)

    async def _load(self, key: _Key) -> None:
        try:
            plugin = await self._calls.call(connector_class, *key)
            self.note(dict(zip(_KEYS, key, strict=False)), connector_type(plugin))
        except MillstreamError:
            pass  # it stays unknown, and the next request tries again
        finally:
            del self._loading[key]


_KEYS = ("connector.class", "connector.plugin.version")


def _key(config: Mapping[str, Any]) -> _Key:
    try:
        return named_version(config)
    except KeyError:
        return ()
