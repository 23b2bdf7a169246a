"""Key stores and trust stores that are read again while the broker runs.

A listener looks at its files periodically. After a change of a file, or of the settings that name it, new
connections use the new certificates; established ones go on. Files that cannot be used leave the last
certificates in force, and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kafka_client.errors import ConfigError
from kafka_client.security.context import make_context
from logd.security.broker_account import tls_between_brokers
from logd.security.listener_security import STORES, server_context, tls_values

LOOK_MS: Final = 5_000.0
"""The time between two looks at the files, in ms."""

log = logging.getLogger("logd.server")


class Contexts(NamedTuple):
    """The TLS contexts for those who connect to a listener, and to connect to other brokers' listener."""

    server: ssl.SSLContext
    client: ssl.SSLContext


_State = tuple[tuple[tuple[str, str], ...], tuple[tuple[int, int, int] | None, ...]]
"""The settings, and of each file: inode, size in bytes, and time of the last change in ns; None: no file."""


class TlsReload:
    """The files of one listener. `properties` returns the broker's current settings, by key."""

    def __init__(self, listener: str, properties: Callable[[], Mapping[str, str]]) -> None:
        self.look_ms = LOOK_MS
        self._listener = listener
        self._properties = properties
        self._state = self._look(properties())

    async def changed(self) -> Contexts | None:
        """Return new contexts if files or settings have changed and can be used, else None."""
        return await asyncio.to_thread(self._read_changed, dict(self._properties()))

    def _read_changed(self, properties: Mapping[str, str]) -> Contexts | None:
        state = self._look(properties)
        if state == self._state:
            return None
        self._state = state
        try:
            contexts = Contexts(
                server_context(properties, self._listener),
                make_context(tls_between_brokers(properties, self._listener)),
            )
        except ConfigError as error:
            log.error(
                "listener %s: the changed certificates are not used, the last ones stay in force: %s",
                self._listener,
                error,
            )
            return None
        log.info("listener %s: new connections use the changed certificates", self._listener)
        return contexts

    def _look(self, properties: Mapping[str, str]) -> _State:
        values = tls_values(properties, self._listener)
        return tuple(sorted(values.items())), tuple(
            _facts(values.get(f"{store}.location")) for store in STORES
        )


def _facts(location: str | None) -> tuple[int, int, int] | None:
    if not location:
        return None
    try:
        facts = os.stat(Path(location))
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
