"""Random histories of what may happen to topics and to a fetcher's assignment, read in two ways at once.

One reader keeps fetch sessions, the other does without. Both are told the same, and whatever either is handed
has to be the next record of its partition; at the end both have read the same, up to the end of every log.

Faults: seeks, pauses, partitions removed and added, new partitions, topics deleted and created again. Topics
are created again either while their partitions are paused, so that positions survive, or noticed and then
sought. Callers add `events`: a broker is killed and forgets its sessions, or leaders change. Records are
appended during every event.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, error_for
from tests.kafka_client.running import QUICK
from tests.support.waiting import until

CATCH_UP_SECONDS = 60.0
APPEND_PAUSE_SECONDS = 0.05
Event = Callable[[Sequence[str]], Awaitable[None]]


class Reader:
    """A fetcher, read by a task of its own, that checks what it is handed."""

    def __init__(self, client: Client, *, fetch_sessions: bool) -> None:
        small: dict[str, Any] = {"max_partition_fetch_bytes": 2_000, "buffer_max_bytes": 20_000}
        self.fetcher = BatchFetcher(client, fetch_sessions=fetch_sessions, fetch_max_wait_ms=20, **small)
        self.next: dict[TopicPartition, int] = {}
        self.values: dict[TopicPartition, list[bytes | None]] = {}
        """Values since the partition was added or sought."""
        self.missing: set[TopicPartition] = set()
        """Partitions whose topic was found to be gone."""
        self.task = asyncio.create_task(self._read())

    def begin(self, tp: TopicPartition, offset: int) -> None:
        """Read from `offset` on, whether the partition is read already or not."""
        if tp in self.next:
            self.fetcher.seek(tp, offset)
        else:
            self.fetcher.add(tp, offset)
        self.next[tp] = max(offset, 0)
        self.values[tp] = []
        self.missing.discard(tp)

    def end(self, tp: TopicPartition) -> None:
        """Read the partition no more."""
        self.fetcher.remove(tp)
        del self.next[tp]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for the condition, or for the error that ends the reading."""
        await until(lambda: self.task.done() or condition(), CATCH_UP_SECONDS)
        if self.task.done():
            self.task.result()

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.fetcher.close()

    async def _read(self) -> None:
        while True:
            try:
                handed = await self.fetcher.fetch(max_bytes=1_000)
            except KafkaError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                self.missing |= set(self.fetcher.failures())
                continue
            for fetched in handed:
                tp = fetched.tp
                assert tp not in self.fetcher.paused(), f"{tp} is paused"
                assert fetched.position == self.next[tp], f"{fetched}: {self.next[tp]} was to be next"
                self.next[tp] = fetched.next_offset
                self.values[tp] += [record[3] for record in fetched.records()]
            await asyncio.sleep(0)  # Others have their turn between two parts of what is buffered.


class History:
    """`run` so many steps. `events`: what else may happen, by a name to tell it by; given the topics."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        seed: int,
        events: Mapping[str, Event] | None = None,
        *,
        replicas: int = 1,
    ) -> None:
        self._bootstrap = bootstrap
        self._random = random.Random(seed)
        self._events = events or {}
        self._replicas = replicas
        self._topics = [f"{prefix}-{name}" for name in "ab"]
        self._logs: dict[TopicPartition, list[bytes]] = {}
        self._paused: set[TopicPartition] = set()
        self._number = 0
        self.steps: list[str] = []

    async def run(self, steps: int) -> None:
        """Do so many things at random, then read everything."""
        async with Client(self._bootstrap, **{**QUICK, "missing_topic_wait_ms": 200}) as client:
            self._client, self._admin = client, Admin(client)
            self._readers = [Reader(client, fetch_sessions=True), Reader(client, fetch_sessions=False)]
            try:
                await self._run(steps)
            except BaseException as error:
                error.add_note("\n".join([*self.steps, *self._behind()]))
                raise
            finally:
                for reader in self._readers:
                    await reader.close()

    async def _run(self, steps: int) -> None:
        for topic in self._topics:
            await self._make(topic, 4)
            for tp in self._of(topic):
                self._begin(tp, 0)
        things: list[Callable[[], Coroutine[Any, Any, None]]]
        things = [self._append] * 6 + [self._seek, self._pause, self._resume, self._drop, self._take] * 2
        things += [self._grow, self._make_anew_unnoticed, self._delete_and_make_anew]
        things += [partial(self._happen, name) for name in self._events]
        for _ in range(steps):
            await self._random.choice(things)()
            if self._random.random() < 0.2:
                await self._catch_up()
        await self._resume(everything=True)
        await self._catch_up()

    async def _catch_up(self) -> None:
        """Wait until both readers are at the end of every log they read; assert that they read the same."""
        with_sessions, without = self._readers
        for reader in self._readers:
            active = [tp for tp in reader.next if tp not in self._paused]
            await reader.until(lambda who=reader, tps=active: all(self._is_at_end(who, tp) for tp in tps))  # type: ignore[misc]
            for tp in active:
                count = len(reader.values[tp])
                assert reader.values[tp] == self._logs[tp][len(self._logs[tp]) - count :], tp
        for tp in with_sessions.next:
            if tp not in self._paused:
                assert with_sessions.values[tp] == without.values[tp], tp

    def _is_at_end(self, reader: Reader, tp: TopicPartition) -> bool:
        return reader.next[tp] == len(self._logs[tp]) and reader.fetcher.lag(tp) == 0

    def _behind(self) -> list[str]:
        """Return a line for each reader and partition that is not at its log's end, to report a failure."""
        return [
            f"{kind} {tp} is at {reader.next[tp]} of {len(self._logs[tp])}, lag {reader.fetcher.lag(tp)}"
            for kind, reader in zip(("with sessions:", "without:"), self._readers, strict=True)
            for tp in reader.next
            if tp not in self._paused and not self._is_at_end(reader, tp)
        ]

    # --- things that happen ---

    async def _append(self) -> None:
        tps = self._some(self._logs)
        self._note(f"append to {tps}")
        async with BatchProducer(self._client, linger_ms=0) as producer:
            for tp in tps:
                await self._write(producer, tp, self._random.randrange(1, 20))

    async def _seek(self) -> None:
        for tp in self._some(self._assigned()):
            self._begin(tp, self._random.choice([-2, self._random.randint(0, len(self._logs[tp]))]))

    async def _pause(self) -> None:
        tps = self._some(self._assigned())
        self._note(f"pause {tps}")
        self._paused |= set(tps)
        for reader in self._readers:
            reader.fetcher.pause(tps)

    async def _resume(self, *, everything: bool = False) -> None:
        tps = list(self._paused) if everything else self._some(self._paused)
        self._note(f"resume {tps}")
        self._paused -= set(tps)
        for reader in self._readers:
            reader.fetcher.resume(tps)

    async def _drop(self) -> None:
        for tp in self._some(self._assigned()):
            self._note(f"drop {tp}")
            self._paused.discard(tp)
            for reader in self._readers:
                reader.end(tp)

    async def _take(self) -> None:
        for tp in self._some(self._logs.keys() - self._assigned()):
            self._begin(tp, self._random.randint(0, len(self._logs[tp])))

    async def _grow(self) -> None:
        topic = self._random.choice(self._topics)
        count = len(self._of(topic)) + 1
        self._note(f"{topic} gets {count} partitions")
        await self._admin.create_partitions({topic: count})
        tp = TopicPartition(topic, count - 1)
        self._logs[tp] = []
        await self._fill(tp, 1)
        self._begin(tp, 0)

    async def _make_anew_unnoticed(self) -> None:
        """Delete and create a topic while its partitions are paused; the new topic has more records."""
        await self._resume(everything=True)  # no record of the old topic may be handed out after this
        await self._catch_up()
        topic = self._random.choice(self._topics)
        ends = {tp: len(self._logs[tp]) for tp in self._of(topic)}
        assigned = [tp for tp in ends if tp in self._assigned()]
        self._note(f"{topic} is made anew while it is paused: {assigned}")
        for reader in self._readers:
            reader.fetcher.pause(assigned)
        await self._delete(topic)
        await self._make(topic, len(ends))
        for tp, end in ends.items():
            await self._fill(tp, end + 1)
        for reader in self._readers:
            for tp in assigned:
                reader.values[tp] = []
            reader.fetcher.resume([tp for tp in assigned if tp not in self._paused])

    async def _delete_and_make_anew(self) -> None:
        """Delete a topic, wait until the readers notice, create it again and seek."""
        topic = self._random.choice(self._topics)
        assigned = [tp for tp in self._of(topic) if tp in self._assigned()]
        self._note(f"{topic} is deleted, noticed, and made anew: {assigned}")
        count = len(self._of(topic))
        await self._delete(topic)
        for reader in self._readers:
            reader.fetcher.resume(assigned)
            await reader.until(lambda who=reader: who.missing.issuperset(assigned))  # type: ignore[misc]
        self._paused -= set(assigned)
        await self._make(topic, count)
        for tp in assigned:
            await self._fill(tp, 3)
            self._begin(tp, 1)

    async def _happen(self, name: str) -> None:
        """Run one of the events, and append until it is over."""
        self._note(name)
        happening = asyncio.ensure_future(self._events[name](self._topics))
        try:
            while not happening.done():
                await self._append()
                await asyncio.wait([happening], timeout=APPEND_PAUSE_SECONDS)
        finally:
            await happening

    # --- how ---

    def _note(self, step: str) -> None:
        self.steps.append(step)

    def _begin(self, tp: TopicPartition, offset: int) -> None:
        self._note(f"read {tp} from {offset}")
        for reader in self._readers:
            reader.begin(tp, offset)

    def _assigned(self) -> set[TopicPartition]:
        return set(self._readers[0].next)

    def _of(self, topic: str) -> list[TopicPartition]:
        return sorted(tp for tp in self._logs if tp.topic == topic)

    def _some(self, tps: Any) -> list[TopicPartition]:
        ordered = sorted(tps)
        return self._random.sample(ordered, self._random.randint(0, min(3, len(ordered))))

    async def _make(self, topic: str, partitions: int) -> None:
        async def attempt() -> None:
            await self._admin.create_topics([NewTopic(topic, partitions, self._replicas)])

        await self._client.retrying(attempt)
        for p in range(partitions):
            self._logs[TopicPartition(topic, p)] = []

    async def _delete(self, topic: str) -> None:
        await self._admin.delete_topics([topic])

        async def attempt() -> None:
            if topic in await self._admin.list_topics():
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic} is still there")

        await self._client.retrying(attempt)

    async def _fill(self, tp: TopicPartition, count: int) -> None:
        async with BatchProducer(self._client, linger_ms=0) as producer:
            await self._write(producer, tp, count)

    async def _write(self, producer: BatchProducer, tp: TopicPartition, count: int) -> None:
        values = [b"%d" % (self._number + each) for each in range(count)]
        self._number += count
        now = int(time.time() * 1000)  # what is older than a week would be deleted
        await producer.send(*tp, [(now, None, value, ()) for value in values])
        self._logs[tp] += values
