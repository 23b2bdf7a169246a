"""A dead letter queue in the log: read it, write its records back, delete them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from connect.dlq.letter import DeadLetter
from connect.errors import ConnectError, NotFound
from kafka_client import Admin, BatchFetcher, BatchProducer, Client, TopicPartition

_FETCH_MS = 1000
_UNACKNOWLEDGED_MAX = 1000
"""Records that are written back and not acknowledged yet."""


@dataclass(slots=True)
class Retried:
    """The outcome of a retry."""

    written: int = 0
    refused: list[tuple[DeadLetter, str]] = field(default_factory=list)
    """Letters that cannot be written back, with the reason."""
    next_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    """The offset behind the last letter of each partition before which every letter was written back."""


class DeadLetterQueue:
    """The topic of a dead letter queue, seen by one client."""

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._admin = Admin(client)
        self.topic = topic

    async def letters(self, start: int | Mapping[int, int] = 0) -> AsyncIterator[DeadLetter]:
        """Yield the letters that are there now, one partition after the other.

        `start`: the first offset, of each partition or by partition. Raises NotFound if there is no topic.
        """
        partitions = await self._partitions()
        firsts = await self._admin.list_offsets(dict.fromkeys(partitions, "earliest"))
        ends = await self._admin.list_offsets(dict.fromkeys(partitions, "latest"))
        async with BatchFetcher(self._client, auto_offset_reset="earliest") as fetcher:
            for tp in partitions:
                end = ends[tp].offset
                position = max(firsts[tp].offset, _of_partition(start, tp))
                if position >= end:
                    continue
                fetcher.assign({tp: position})
                while fetcher.position(tp) < end:
                    for fetched in await fetcher.fetch(timeout_ms=_FETCH_MS):
                        for part in fetched.parts(1000):
                            for record in part.records:
                                if record[0] < end:
                                    yield DeadLetter.of(tp, record)

    async def counts(self) -> Counter[tuple[str, str, str]]:
        """Return the number of letters by connector, stage and class of the exception."""
        return Counter([letter.reason async for letter in self.letters()])

    async def is_queue(self) -> bool:
        """Return True if the last record of a partition has context headers."""
        ends = await self._admin.list_offsets(dict.fromkeys(await self._partitions(), "latest"))
        start = {tp.partition: max(0, end.offset - 1) for tp, end in ends.items()}
        return any([bool(letter.context) async for letter in self.letters(start)])

    async def retry(
        self, is_chosen: Callable[[DeadLetter], bool], *, start: int = 0, to: str | None = None
    ) -> Retried:
        """Write letters back to their original topics, or to `to`, without the context headers.

        A letter goes to its original partition; to that of its key if there is none, or if `to` is another
        topic. Returns when all are acknowledged. Raises KafkaError for a topic that does not take one.
        """
        outcome = Retried()
        complete: set[TopicPartition] = set()
        waiting: list[asyncio.Future[int | None]] = []
        async with BatchProducer(self._client) as producer:
            async for letter in self.letters(start):
                if not is_chosen(letter):
                    complete.add(letter.tp)
                    continue
                reason = _refusal(letter, to)
                if reason is not None:
                    outcome.refused.append((letter, reason))
                    complete.add(letter.tp)
                    continue
                topic = to or letter.origin
                assert topic is not None
                partition = await self._partition(producer, letter, topic)
                waiting.append(await producer.send(topic, partition, [letter.as_written()]))
                if letter.tp not in complete:
                    outcome.next_offsets[letter.tp] = letter.offset + 1
                outcome.written += 1
                if len(waiting) >= _UNACKNOWLEDGED_MAX:
                    await _all(waiting)
            await producer.flush()
            await _all(waiting)
        return outcome

    async def drop(self, before: int | Mapping[int, int]) -> dict[TopicPartition, int]:
        """Delete letters before an offset, of each partition or by partition; -1 deletes all.

        Return the first offset that each of these partitions has now.
        """
        partitions = await self._partitions()
        if not isinstance(before, int):
            partitions = [tp for tp in partitions if tp.partition in before]
        ends = await self._admin.list_offsets(dict.fromkeys(partitions, "latest"))
        return await self._admin.delete_records(
            {tp: min(_of_partition(before, tp), ends[tp].offset) for tp in partitions}
        )

    async def _partition(self, producer: BatchProducer, letter: DeadLetter, topic: str) -> int:
        count = len((await self._client.topic(topic)).partitions)
        partition = letter.partition if topic == letter.origin else None
        if partition is not None and partition < count:
            return partition
        return producer.partition_for(topic, letter.key, count)

    async def _partitions(self) -> list[TopicPartition]:
        metadata = await self._client.metadata([self.topic], allow_missing=True)
        if self.topic not in metadata.topics:
            raise NotFound(f"there is no topic {self.topic}")
        return [TopicPartition(self.topic, p) for p in sorted(metadata.topics[self.topic].partitions)]


def _of_partition(offsets: int | Mapping[int, int], tp: TopicPartition) -> int:
    return offsets if isinstance(offsets, int) else offsets.get(tp.partition, 0)


def _refusal(letter: DeadLetter, to: str | None) -> str | None:
    if letter.is_described:
        return "a source's record without bytes: have the source read it again from its source offset"
    if to is None and letter.origin is None:
        return "its original topic is not known (context headers were not enabled): name one with --to"
    return None


async def _all(waiting: list[asyncio.Future[int | None]]) -> None:
    """Wait for acknowledgements, and clear the list. Raises the first failure."""
    await asyncio.gather(*waiting)
    waiting.clear()


async def queues(client: Client, names: Sequence[str] = ()) -> list[DeadLetterQueue]:
    """Return the queues of these topics, or of all topics whose last records are dead letters.

    Raises ConnectError if none is named and there is none.
    """
    if names:
        return [DeadLetterQueue(client, name) for name in names]
    listed = sorted(name for name in await Admin(client).list_topics() if not name.startswith("__"))
    every = [DeadLetterQueue(client, name) for name in listed]
    dead = [queue for queue in every if await queue.is_queue()]
    if not dead:
        raise ConnectError(
            "no topic ends with dead letters; name a topic if its letters have no context headers "
            "(errors.deadletterqueue.context.headers.enable)"
        )
    return dead
