"""SessionKeys: the rotation of the key that signs requests between workers (KIP-507)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from connect.distributed.config import DistributedConfig
from connect.distributed.signatures import new_key
from connect.errors import MillstreamError
from connect.herder import Herder
from connect.herder.session_key import SessionKey
from connect.stores.config_records import SESSION_KEY, Decision

_log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


class SessionKeys:
    """The age of a group's session key, and its replacement by the leader.

    A key's age is measured from the moment that this worker read it. The wall clock serves for two things: it
    dates the record, as Kafka's format wants, and says how old a key is that was there at the worker's start.

    `may_rotate` returns True if this worker leads a group that signs. `clock` returns seconds from some
    moment on, `wall_clock` seconds since 1970.
    """

    def __init__(
        self,
        config: DistributedConfig,
        herder: Herder,
        *,
        may_rotate: Callable[[], bool],
        change: Callable[[Decision], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._herder = herder
        self._may_rotate = may_rotate
        self._change = change
        self._clock = clock
        self._wall_clock = wall_clock
        self._ttl = config.inter_worker_key_ttl_ms / 1000
        self._key: SessionKey | None = None
        self._ends_at = clock()
        self._due = asyncio.Event()

    def note_first(self) -> None:
        """Take note of the key that the config topic had at this worker's start."""
        self.note()
        if self._key is not None:
            age = self._wall_clock() - self._key.created_ms / 1000
            self._ends_at = self._clock() + min(max(self._ttl - age, 0), self._ttl)

    def note(self) -> None:
        """Take note of the herder's key, which may be a new one."""
        key = self._herder.config.session_key
        if key is not self._key:
            self._key = key
            self._ends_at = self._clock() + self._ttl

    def wake(self) -> None:
        """Have the key looked at now, because this worker may lead from now on."""
        self._due.set()

    def seconds_left(self) -> float:
        """Return the seconds until the key is to be replaced; 0 or less if it is due, or if there is none."""
        return 0 if self._key is None else self._ends_at - self._clock()

    async def run(self) -> None:
        """Replace the key whenever its time is over and this worker leads, until cancelled."""
        while True:
            if self.seconds_left() <= 0 and self._may_rotate():
                try:
                    await self.replace()
                    continue
                except (MillstreamError, TimeoutError) as e:
                    _log.warning("the session key is not replaced yet: %r", e)
            self._due.clear()
            try:
                async with asyncio.timeout(max(self.seconds_left(), min(self._ttl, RETRY_SECONDS))):
                    await self._due.wait()
            except TimeoutError:
                pass

    async def replace(self) -> None:
        """Write a new key, and return once it is read back."""
        config = self._config
        key = new_key(
            config.inter_worker_key_generation_algorithm,
            config.inter_worker_key_size,
            int(self._wall_clock() * 1000),
        )
        await self._change(lambda: [(SESSION_KEY, key.value())])
        self.note()
