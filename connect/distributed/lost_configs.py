"""LostConfigs: what a worker knows and its config topic has lost, and the way back into the topic.

Kafka's workers go on with what they have in memory, and the connectors are gone at their next start. Here the
leader writes them again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from connect.errors import MillstreamError
from connect.herder import Herder
from connect.herder.config_state import ConfigState
from connect.stores import ConfigRecord
from connect.stores.config_records import SESSION_KEY

_log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
_NAMED = 5
"""How many connectors a message names."""


class LostConfigs:
    """The difference between a worker's memory and its config topic, from a loss until there is none.

    `read_to_end` and `write` are those of the config topic; `lock` keeps other changes of the topic away.
    """

    def __init__(
        self,
        herder: Herder,
        *,
        is_leader: Callable[[], bool],
        read_to_end: Callable[[], Awaitable[object]],
        write: Callable[[Sequence[ConfigRecord]], Awaitable[None]],
        lock: asyncio.Lock,
    ) -> None:
        self._herder = herder
        self._is_leader = is_leader
        self._read_to_end = read_to_end
        self._write = write
        self._stored: ConfigState | None = None
        """The state of the topic's records since the last loss; None without a loss."""
        self._lost = asyncio.Event()
        self._lock = lock

    @property
    def is_open(self) -> bool:
        """True from a loss until this worker has seen that nothing is missing."""
        return self._stored is not None

    def note_loss(self) -> None:
        """Take note that the topic has lost records, and is read again from its start."""
        self._stored = ConfigState()
        self._herder.config.note_loss()
        self._lost.set()

    def note(self, records: Sequence[ConfigRecord]) -> None:
        """Take note of records that were read, after the herder."""
        if self._stored is not None:
            for key, value in records:
                self._stored.apply(key, value)

    def problem(self) -> str | None:
        """Return which connectors only this worker's memory has, and the remedy; None if there is none."""
        missing = self._missing_by_connector()
        if not missing:
            return None
        names = sorted(name for name in missing if name is not None)
        shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        return (
            f"The config topic has lost records; this worker has {len(names)} connectors in memory "
            f"that are not in the topic as they should be: {shown}. The group's leader writes again what it "
            "knows. If this message stays, the leader does not know them: put their configs again"
        )

    async def run(self) -> None:
        """Bring what is lost back into the topic while this worker leads, until cancelled."""
        while True:
            await self._lost.wait()
            try:
                await self._read_to_end()
                if await self._is_whole():
                    self._lost.clear()
                    continue
            except (MillstreamError, TimeoutError) as e:
                _log.warning("lost connectors are not in the config topic yet: %r", e)
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_whole(self) -> bool:
        """Write what is missing if this worker leads. Return True if nothing is missing."""
        async with self._lock:
            await self._read_to_end()  # what was written while others had the lock
            missing = self._missing_by_connector()
            if not missing:
                self._stored = None
                return True
            if not self._is_leader():
                return False
            _log.warning(
                "the config topic has lost records of %d connectors: they are written again", len(missing)
            )
            for records in missing.values():
                await self._write(records)
            return False  # another look says whether they arrived

    def _missing_by_connector(self) -> dict[str | None, list[ConfigRecord]]:
        """Return the records that are missing by connector; by None those of no connector."""
        stored, config = self._stored, self._herder.config
        if stored is None:
            return {}
        missing: dict[str | None, list[ConfigRecord]] = {}
        if config.session_key is not None and stored.session_key is None:
            missing[None] = [(SESSION_KEY, config.session_key.value())]
        for name in config.connectors:
            if records := self._herder.records_beyond(name, stored):
                missing[name] = records
        return missing
