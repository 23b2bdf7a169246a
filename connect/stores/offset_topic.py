"""OffsetTopic: source offsets in a group's offset topic; Kafka's KafkaOffsetBackingStore."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from connect.stores.internal_topic import InternalTopic
from connect.stores.offset_keys import normal_form
from connect.stores.topic_log import LogRecord, TopicLog
from kafka_client import Client, partition_for_key


@dataclass(frozen=True, slots=True)
class _Stored:
    """The value of one spelling of a key, and where it stands in the topic."""

    value: bytes | None
    partition: int
    offset: int
    """-1: the topic has lost the record."""
    timestamp: int
    is_read: bool
    """False for what was put, and not read back yet."""


class OffsetTopic:
    """An OffsetStore in a topic. Open it with `await OffsetTopic.open(...)`, and `close` it.

    A key that was read is written byte for byte as it was first seen, in whatever spelling it is put. If the
    topic has several spellings of a source partition, the newest counts, and the next `put` deletes the rest.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._log: TopicLog
        self._stored: dict[bytes, dict[bytes, _Stored]] = {}
        """By normal form and spelling."""

    @classmethod
    async def open(cls, client: Client, topic: InternalTopic, *, exactly_once: bool = False) -> OffsetTopic:
        """Read the topic whole; with `exactly_once` no offset of an aborted or open transaction counts.

        Raises what `InternalTopic.ensure` raises.
        """
        store = cls()
        store._log = await TopicLog.open(
            client,
            topic,
            store._read,
            isolation_level="read_committed" if exactly_once else "read_uncommitted",
            on_lost=store._lost,
        )
        return store

    @property
    def topic(self) -> str:
        """The topic's name, for a sender that writes offsets in a task's transaction."""
        return self._log.topic.name

    def get(self, key: bytes) -> bytes | None:
        """Return the offset stored under `key`, or None."""
        stored = [each for each in self._spellings(key).values() if each.value is not None]
        return max(stored, key=lambda each: each.timestamp).value if stored else None

    def keys(self) -> Iterable[bytes]:
        """Return the keys of all stored offsets, in their normal form."""
        return [key for key in self._stored if self.get(key) is not None]

    def as_written(
        self, offsets: Mapping[bytes, bytes | None]
    ) -> dict[int, list[tuple[bytes, bytes | None]]]:
        """Return the records that store these offsets, by the topic's partition."""
        parts: dict[int, list[tuple[bytes, bytes | None]]] = {}
        for key, value in offsets.items():
            first, *others = list(self._spellings(key)) or [key]
            for spelling, each in [(first, value), *((other, None) for other in others)]:
                partition = partition_for_key(spelling, self._log.partition_count)
                parts.setdefault(partition, []).append((spelling, each))
        return parts

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store these offsets, and return once all in-sync replicas have them. None deletes its key.

        Brokers that are away are waited for. After an error some of the offsets may be stored. `get` returns
        what was put as soon as this returns.
        """
        parts = self.as_written(offsets)
        firsts = await self._log.send([pair for part in parts.values() for pair in part])
        if any(first < 0 for first in firsts.values()):
            await self.refresh()
        else:
            self.note(parts, firsts)

    def note(
        self, parts: Mapping[int, Sequence[tuple[bytes, bytes | None]]], firsts: Mapping[int, int]
    ) -> None:
        """Take note of records in the topic that may not be read yet: `get` returns them from now on.

        `parts`: what `as_written` returned. `firsts`: the offset of each part's first record.
        """
        now = int(self._clock() * 1000)
        for partition, part in parts.items():
            first, is_read = firsts[partition], self._log.position(partition) >= firsts[partition] + len(part)
            for spelling, value in part:
                if not is_read:
                    self._set(spelling, _Stored(value, partition, first, now, is_read=False))

    async def refresh(self) -> None:
        """Read what others have stored until now."""
        await self._log.read_to_end()

    async def close(self) -> None:
        """Stop following."""
        await self._log.close()

    def _spellings(self, key: bytes) -> dict[bytes, _Stored]:
        if (spellings := self._stored.get(key)) is not None:
            return spellings
        return self._stored.get(normal_form(key), {})

    def _read(self, records: list[LogRecord]) -> None:
        for record in records:
            stored = _Stored(record.value, record.partition, record.offset, record.timestamp, is_read=True)
            self._set(record.key, stored)

    def _lost(self, partition: int) -> None:
        """Keep the offsets that a partition has lost, until there are newer ones."""
        for spellings in self._stored.values():
            for spelling, stored in spellings.items():
                if stored.partition == partition:
                    spellings[spelling] = replace(stored, offset=-1)

    def _set(self, spelling: bytes, stored: _Stored) -> None:
        normal = normal_form(spelling)
        spellings = self._stored.setdefault(normal, {})
        before = spellings.get(spelling)
        # What is read may be older than what was put, and what was put older than what was read meanwhile.
        is_newer = before is None or before.is_read == stored.is_read or stored.offset >= before.offset
        if is_newer and stored.value is None and stored.is_read:
            spellings.pop(spelling, None)
        elif is_newer:
            spellings[spelling] = stored
        if not spellings:
            del self._stored[normal]
