"""OffsetTopics: a worker's offset topic, and those of its own that a connector names (KIP-618).

A connector with `offsets.storage.topic` writes its offsets there, and then to the worker's topic, too. It
reads its own topic first. So it can move between the two: nothing is copied, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from connect.stores.internal_topic import InternalTopic
from connect.stores.offset_topic import OffsetTopic
from kafka_client import Client
from kafka_client.errors import MillstreamError

_log = logging.getLogger(__name__)


class OffsetTopics:
    """The offset topics of a worker. Open it with `await OffsetTopics.open(...)`, and `close` it."""

    def __init__(
        self, client: Client, topic: InternalTopic, shared: OffsetTopic, *, exactly_once: bool
    ) -> None:
        self.shared = shared
        """The worker's topic."""
        self._client = client
        self._topic = topic
        self._exactly_once = exactly_once
        self._opening: dict[str, asyncio.Task[OffsetTopic]] = {}

    @classmethod
    async def open(cls, client: Client, topic: InternalTopic, *, exactly_once: bool) -> OffsetTopics:
        """Read the worker's topic. With `exactly_once` only committed offsets of all topics count."""
        shared = await OffsetTopic.open(client, topic, exactly_once=exactly_once)
        return cls(client, topic, shared, exactly_once=exactly_once)

    def of(self, own: str | None) -> ConnectorOffsetTopic:
        """Return the store of a connector whose `offsets.storage.topic` is `own`."""
        return ConnectorOffsetTopic(self, None if own == self._topic.name else own)

    async def opened(self, name: str) -> OffsetTopic:
        """Return a connector's own topic, created and read whole at the first call.

        Raises what `OffsetTopic.open` raises; the next call tries again.
        """
        opening = self._opening.get(name)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            topic = replace(self._topic, name=name, setting="offsets.storage.topic", create=True)
            opening = asyncio.create_task(
                OffsetTopic.open(self._client, topic, exactly_once=self._exactly_once), name=f"open {name}"
            )
            self._opening[name] = opening
        return await asyncio.shield(opening)

    async def close(self) -> None:
        """Stop following all topics."""
        for opening in self._opening.values():
            opening.cancel()
            await asyncio.wait([opening])
            if not opening.cancelled() and opening.exception() is None:
                await opening.result().close()
        await self.shared.close()


class ConnectorOffsetTopic:
    """An OffsetStore of one connector: in its own topic and the worker's, or in the worker's alone."""

    def __init__(self, topics: OffsetTopics, own: str | None) -> None:
        self._topics = topics
        self._name = own
        self._own: OffsetTopic | None = None

    @property
    def _primary(self) -> OffsetTopic:
        if self._name is None:
            return self._topics.shared
        assert self._own is not None, "refresh() opens the connector's topic"
        return self._own

    @property
    def primary_name(self) -> str:
        """The name of the topic that the connector's transactions write to."""
        return self._name or self._topics.shared.topic

    def get(self, key: bytes) -> bytes | None:
        """Return the offset stored under `key`: the connector's own one, else the worker's; or None."""
        value = None if self._name is None else self._primary.get(key)
        return self._topics.shared.get(key) if value is None else value

    def keys(self) -> Iterable[bytes]:
        """Return the keys of all stored offsets, in their normal form."""
        return {*self._primary.keys(), *self._topics.shared.keys()}

    async def refresh(self) -> None:
        """Read what others have stored until now; the first call opens the connector's own topic."""
        if self._name is not None:
            self._own = await self._topics.opened(self._name)
            await self._own.refresh()
        await self._topics.shared.refresh()

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store offsets; None deletes its key.

        Deletions go to the worker's topic first: a deleted offset of the connector's own is not to uncover
        an older one.
        """
        if self._name is None:
            await self._topics.shared.put(offsets)
            return
        await self.refresh()
        if deleted := {key: value for key, value in offsets.items() if value is None}:
            await self._topics.shared.put(deleted)
        await self._primary.put(offsets)
        await self._copy({key: value for key, value in offsets.items() if value is not None})

    async def as_written(
        self, offsets: Mapping[bytes, bytes | None]
    ) -> dict[int, list[tuple[bytes, bytes | None]]]:
        """Return the records that store these offsets in a transaction, by the topic's partition.

        Call `refresh` before.
        """
        return self._primary.as_written(offsets)

    async def note_committed(
        self,
        offsets: Mapping[bytes, bytes],
        parts: Mapping[int, Sequence[tuple[bytes, bytes | None]]],
        firsts: Mapping[int, int],
    ) -> None:
        """Take note of the offsets of a committed transaction, and copy them to the worker's topic.

        `parts`: what `as_written` returned. `firsts`: the offset of each part's first record, if it is known.
        """
        self._primary.note({number: parts[number] for number in firsts}, firsts)
        await self._copy(offsets)

    async def _copy(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store in the worker's topic what is in the connector's own topic; a failure is logged."""
        if self._name is None or not offsets:
            return
        try:
            await self._topics.shared.put(offsets)
        except MillstreamError as e:
            _log.warning("offsets in %s are not copied to %s: %s", self._name, self._topics.shared.topic, e)
