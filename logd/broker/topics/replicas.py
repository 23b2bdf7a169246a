"""The partitions held here: opened and closed as applied changes of the cluster's metadata say.

Nothing is decided here. A new partition begins in memory, in slices between which clients have their turn,
and the thread pool makes its files behind the answer; those of deleted topics go the same way. What a crash
leaves undone, the next start finishes.

Among several brokers the start finds logs before it knows which of them are assigned to this one: they are
at hand (`logs_at_hand`) for partitions that begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.partition.replication_role import Unassigned
from logd.broker.work.disk_work import DiskWork

if TYPE_CHECKING:
    from logd.broker.background.flusher import Flusher
    from logd.broker.log_dirs.log_dirs import LogDirs
    from logd.broker.partition.admission import TransactionGuard
    from logd.broker.partition.partition import Partition
    from logd.broker.topics.topic import Topic
    from logd.broker.topics.unassigned_logs import UnassignedLogs
    from logd.storage import Deletion, Log, LogDirectory

PARTITIONS_PER_TURN = 50
"""Partitions begun or taken away before clients get their turn again."""
PLACED_AT_ONCE = 100
"""Partitions whose files are made by one job in the thread pool."""

logger = logging.getLogger("logd.broker")

OFFLINE = "%s is offline: its log is in none of the serving log directories"


class Replicas:
    """The replicas held here: ``partitions`` by (name, index), in the log directories that are passed in.

    ``rehomed`` is called when a partition has begun again because its log directory failed.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        partitions: dict[TopicPartition, Partition],
        *,
        now_ms: Callable[[], int],
        flusher: Flusher,
        hide: Callable[[Sequence[Deletion], Iterable[LogDirectory]], Awaitable[None]],
        run: Callable[[Callable[[], None]], Awaitable[None]],
        rehomed: Callable[[], None],
    ) -> None:
        self.partitions = partitions
        self._log_dirs = log_dirs
        self._now_ms = now_ms
        self._flusher = flusher
        self._hide = hide
        self._run = run
        self._rehomed = rehomed
        self._disk_work = DiskWork()
        self._guard: TransactionGuard | None = None
        self._at_hand: UnassignedLogs | None = None
        self._is_all_known = False
        self.lost: set[TopicPartition] = set()
        """In a cluster: partitions assigned here whose log is, or may be, in a log directory that failed.

        They do not begin in another directory until the next start.
        """

    def keep_unassigned(self, logs: UnassignedLogs) -> None:
        """Keep the logs of this directory for partitions of a cluster, until the controller assigns them."""
        self._at_hand = logs

    async def all_known(self) -> None:
        """Note that all partitions assigned to this broker have begun, and set stray logs aside.

        Partitions that are assigned from now on are new to this broker.
        """
        self._is_all_known = True
        if self._at_hand is not None:
            await self._at_hand.set_strays_aside()

    def set_guard(self, guard: TransactionGuard) -> None:
        """Set what every partition asks whether a producer may begin a transaction there."""
        self._guard = guard
        for partition in self.partitions.values():
            partition.guard = guard

    @property
    def can_begin(self) -> bool:
        """True if a log directory serves that could take a partition."""
        return bool(self._log_dirs.online)

    async def room(self) -> None:
        """Wait while the disk is too far behind what was applied."""
        await self._disk_work.room()

    async def disk_work_ended(self) -> None:
        """Wait until the disk has what was applied: files made and taken away."""
        await self._disk_work.all_ended()

    def statistics(self) -> dict[str, int]:
        """See `DiskWork.statistics`."""
        return self._disk_work.statistics()

    # Opening, at the start

    def open(self, topic: Topic, logs: Mapping[int, Log]) -> None:
        """Open a topic's partitions with the logs found; the ones it should have as well are created. Blocks.

        A log that was not found may be in a directory that is offline, and creating it elsewhere would lose
        what it holds: then the partition is offline until that directory is back, or is taken out of
        log.dirs.
        """
        for index in range(topic.image.partitions):
            topic.partitions[index] = self._opened(topic, index, logs.get(index))
        self._hold(topic)

    def _hold(self, topic: Topic) -> None:
        for partition in topic.partitions:
            if partition is not None:
                self.partitions[partition.tp] = partition

    def _opened(self, topic: Topic, index: int, log: Log | None) -> Partition | None:
        if log is None and not self._log_dirs.is_complete:
            logger.error(OFFLINE, TopicPartition(topic.name, index))
            return None
        if log is None:
            log = self._created_log(topic, index)
        return None if log is None else self._partition(topic, log, self._directory_of(log))

    def _created_log(self, topic: Topic, index: int) -> Log | None:
        """Create a log in the best log directory that takes it; None if none does, and the next start tries
        again.
        """
        for directory in self._log_dirs.for_new(topic.name, index):
            try:
                log = directory.create_log(
                    topic.name, index, topic_id=topic.topic_id, config=topic.config, now_ms=self._now_ms()
                )
                # The topic's log was lost. A new epoch tells consumers that its offsets are used again.
                directory.begin_epoch([log], above=self._log_dirs.announced_epoch)
                return log
            except KafkaError as error:
                logger.error("%s not created: %s", TopicPartition(topic.name, index), error)
        return None

    def _directory_of(self, log: Log) -> LogDirectory:
        return next(directory for directory in self._log_dirs if directory.logs.get(log.tp) is log)

    def _partition(self, topic: Topic, log: Log, directory: LogDirectory) -> Partition:
        from logd.broker.partition.partition import Partition  # a broker is ready before there is one

        checkpointed = directory.high_watermarks.get(log.tp, -1)
        partition = Partition(
            log,
            directory,
            topic.topic_id,
            topic.config,
            self._flusher,
            role=None if self._at_hand is None else Unassigned(checkpointed),
            checkpointed_high_watermark=checkpointed,
        )
        partition.guard = self._guard
        partition.is_leader = self._at_hand is None
        return partition

    # Beginning

    async def begin(self, topic: Topic, indexes: Iterable[int]) -> None:
        """Begin these partitions, which are not held yet: with the log at hand, or a new one. They are held
        once this returns. Not for two changes at a time.
        """
        await self._disk_work.ended(topic.name)
        new = []
        for index in indexes:
            if self._at_hand is not None and TopicPartition(topic.name, index) in self.lost:
                continue
            assigned = await self._taken_in_hand(self._at_hand, topic, index) if self._at_hand else None
            if assigned is None and self._may_be_lost:
                self._lose(topic, index)
            elif assigned is None:
                new.append(index)
            else:
                topic.partitions[index] = self.partitions[assigned.tp] = assigned
        if new:
            await self._begin_new(topic, new)

    @property
    def _may_be_lost(self) -> bool:
        """True if a log that was not found may be in a directory that does not serve."""
        return self._at_hand is not None and not self._is_all_known and not self._log_dirs.is_complete

    def _lose(self, topic: Topic, index: int) -> None:
        logger.error(OFFLINE, TopicPartition(topic.name, index))
        self.lost.add(TopicPartition(topic.name, index))

    async def _begin_new(self, topic: Topic, indexes: Sequence[int]) -> None:
        for directory in self._log_dirs.online:
            job = directory.start_forgetting([TopicPartition(topic.name, index) for index in indexes])
            if job is not None:
                with contextlib.suppress(KafkaError):  # logged already; the directory is offline now
                    await self._run(job)
        partitions: list[Partition] = []
        for number, index in enumerate(indexes, 1):
            partition = topic.partitions[index] = self._begin_partition(topic, index)
            if partition is not None:
                self.partitions[partition.tp] = partition
                partitions.append(partition)
            if number % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
        self._disk_work.begin(topic.name, self._place(topic, partitions))

    async def _taken_in_hand(self, at_hand: UnassignedLogs, topic: Topic, index: int) -> Partition | None:
        """Return the partition with its log from the unassigned logs, or None if there is none."""
        assigned = await at_hand.take(TopicPartition(topic.name, index))
        if assigned is None:
            return None
        log = assigned.log
        if log.topic_id is None:
            await self._run(lambda: log.identify(topic.topic_id))
        log.config = topic.config
        return self._partition(topic, log, assigned.directory)

    def _begin_partition(self, topic: Topic, index: int) -> Partition | None:
        for directory in self._log_dirs.for_new(topic.name, index):
            with contextlib.suppress(KafkaError):  # the directory has failed meanwhile
                log = directory.new_log(
                    topic.name, index, topic_id=topic.topic_id, config=topic.config, now_ms=self._now_ms()
                )
                return self._partition(topic, log, directory)
        logger.error("%s is offline: no log directory serves", TopicPartition(topic.name, index))
        return None

    async def _place(self, topic: Topic, made: Sequence[Partition | None]) -> None:
        """Create the files of new partitions.

        A log directory may fail meanwhile. On a standalone broker its new partitions are created again in
        another directory. In a cluster, the partitions' other replicas take over.
        """
        partitions = [partition for partition in made if partition is not None]
        by_directory: dict[LogDirectory, list[Log]] = {}
        for partition in partitions:
            by_directory.setdefault(partition.directory, []).append(partition.log)
        for directory, logs in by_directory.items():
            for start in range(0, len(logs), PLACED_AT_ONCE):
                if topic.is_deleted:
                    return
                try:
                    await self._run(directory.placing(logs[start : start + PLACED_AT_ONCE]))
                except KafkaError as error:
                    logger.error(
                        "%s: partitions not created: %s", topic.name, error, extra={"topic": topic.name}
                    )
                    break
        again = [one for one in partitions if not one.log.is_placed and not one.log_end_offset]
        if again and not topic.is_deleted and self._at_hand is None:
            await self._place(topic, [self._begun_again(topic, partition) for partition in again])

    def _begun_again(self, topic: Topic, failed: Partition) -> Partition | None:
        partition = topic.partitions[failed.index] = self._begin_partition(topic, failed.index)
        if partition is not None:
            self.partitions[partition.tp] = partition
        self._rehomed()
        return partition

    # Ending

    def end(self, topic: Topic) -> None:
        """Close a deleted topic's partitions; requests that wait for one are answered."""
        topic.is_deleted = True
        self._end(topic, [partition for partition in topic.partitions if partition is not None])

    def end_some(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        """Close partitions of a topic, and delete their logs: they are not assigned to this broker any more.

        Nothing may be copied to them, nor be read by a leader's role.
        """
        for partition in partitions:
            topic.partitions[partition.index] = None
        self._end(topic, partitions)

    def _end(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        for partition in partitions:
            del self.partitions[partition.tp]
            partition.release_waiters()  # now: what the disk still does for the topic may take a while
        self._disk_work.begin(topic.name, self._take_away(topic, partitions))

    async def _take_away(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        """Take out the logs.

        Those that cannot be are deleted by the next start, which knows the topic as deleted.
        """
        taken_out: dict[LogDirectory, list[tuple[Path, Path]]] = {}
        for number, partition in enumerate(partitions, 1):
            self._flusher.forget(partition)
            with contextlib.suppress(KafkaError):  # its directory has failed, which is in the log
                rename = partition.directory.take_out(partition.topic, partition.index)
                taken_out.setdefault(partition.directory, []).append(rename)
            if number % PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
        delay_ms = topic.config.file_delete_delay_ms
        deletions = [directory.deletion(renames, delay_ms) for directory, renames in taken_out.items()]
        try:
            await self._hide(deletions, taken_out)
        except KafkaError as error:
            logger.error(
                "topic %s is not deleted wholly yet: %s", topic.name, error, extra={"topic": topic.name}
            )

    def take_offline(self, directory: LogDirectory) -> list[Partition]:
        """Drop the partitions of a failed log directory, as after a start without it. Return them."""
        offline = [partition for partition in self.partitions.values() if partition.directory is directory]
        for partition in offline:
            del self.partitions[partition.tp]
        if self._at_hand is not None:
            self.lost.update(self._at_hand.forget(directory), (partition.tp for partition in offline))
        return offline
