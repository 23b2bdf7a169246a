"""One attempt to answer a Fetch: each partition is read, then checked before the records are sent.

Work that would wait for the disk becomes a job, to be run in a thread before the next attempt.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.fetch import PartitionFetched
from logd.api.current_leaders import Find
from logd.broker.cluster.replica_selector import ReadElsewhere
from logd.broker.partition.fencing import LogDiverged, check_last_fetched, check_leader_epoch
from logd.storage import NotResident, is_resident, warm
from logd.storage.disk import CACHED_ONLY

if TYPE_CHECKING:
    from kafka_client.records.slice import FileSlice
    from kafka_client.wire.fetch import FetchPartition, ReceivedFetch, Topic
    from logd.api.fetch.follower_fetch import Refused
    from logd.broker.cluster.replica_selector import RackReplicas
    from logd.broker.cluster.replication.led_partitions import LedPartitions
    from logd.broker.cluster.replication.replication_quota import ThrottledFetch
    from logd.broker.fetching.cold_reads import ColdReadRounds, Job
    from logd.broker.fetching.fetch_session import SessionPartition
    from logd.broker.partition.partition import Partition

    Fetched: TypeAlias = list[PartitionFetched[FileSlice]]
    Look: TypeAlias = tuple[Fetched, int, Partition, FetchPartition, FileSlice]
    """Records to be looked at before they are sent, with the list their answer stands in, and its place."""

_ELSEWHERE = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    )
)
"""Errors of partitions that another broker leads: the client is told at once."""

RECORD_ROUNDS_MAX = 2
"""How often the records of one answer are read in; what memory does not keep is sent as it comes."""


class FetchAttempt:
    """`read` each partition, then `look`. What has come of it so far:

    ``size`` bytes of records; ``found``, the partitions that are there and may have news; how many are
    ``missing``; ``has_failed``, so that the answer does not wait, nor with ``has_news``, where a follower is
    to hear from where on, or how far if ``is_prompt``, a partition reaches; ``jobs`` that have to be run
    before these partitions can be read; ``looks``, what `look` has to look at.

    ``any_replica``: the reader may be answered by a follower (KIP-392); ``replica_selector``: chooses
    the replica to read from instead of this leader; ``leading``: what a follower's fetch is checked by.
    """

    __slots__ = (
        "_any_replica",
        "_bytes_max",
        "_closest",
        "_find",
        "_is_committed",
        "_is_follower",
        "_is_plain",
        "_is_prompt",
        "_leading",
        "_refused",
        "_request",
        "_rounds",
        "_throttle",
        "found",
        "has_failed",
        "has_news",
        "jobs",
        "looks",
        "missing",
        "size",
    )

    def __init__(
        self,
        request: ReceivedFetch,
        is_committed: bool,
        find: Find,
        bytes_max: int,
        rounds: ColdReadRounds,
        refused: Refused,
        any_replica: bool,
        replica_selector: RackReplicas | None,
        is_prompt: bool,
        throttle: ThrottledFetch | None,
        leading: LedPartitions | None,
    ) -> None:
        self._request = request
        self._is_committed = is_committed
        self._is_follower = request.replica_id >= 0
        self._is_plain = not (is_committed or self._is_follower)
        self._find = find
        self._bytes_max = bytes_max
        self._rounds = rounds
        self._refused = refused
        self._any_replica = any_replica
        self._closest = replica_selector
        self._is_prompt = is_prompt
        self._throttle = throttle
        self._leading = leading
        self.size = self.missing = 0
        self.has_failed = self.has_news = False
        self.found: list[Partition] = []
        self.jobs: list[Job] = []
        self.looks: list[Look] = []

    def read(
        self, name: Topic, asked: FetchPartition, held: SessionPartition | None, fetched: Fetched
    ) -> None:
        """Add a partition's answer to ``fetched``; none where there is no news for its session, ``held``."""
        partition = self._partition_of(name, asked, fetched)
        if partition is None:
            return
        is_committed = self._is_committed
        bound = partition.high_watermark if self._is_plain else self._bound(partition)
        piece, is_recent = None, True
        try:
            piece, is_recent = self._piece(partition, asked, bound)
        except (KafkaError, LogDiverged, ReadElsewhere) as reason:
            self.has_failed = True
            fetched.append(self._unread(partition, asked, reason))
            return
        except NotResident as need:
            self.jobs.append(need.job)
        if piece is not None and self._throttle is not None:
            piece = self._throttle.let_through(partition, piece)
        if piece is not None:
            self.size += piece.length
            if is_committed or not is_recent:
                self.looks.append((fetched, len(fetched), partition, asked, piece))
        elif held is not None and held.knows(partition):
            if asked.fetch_offset >= bound:
                held.watch(partition)
            else:
                self.found.append(partition)
            return
        elif held is not None and self._is_follower:
            self.has_news |= self._is_prompt or held.log_start_offset != partition.log_start_offset
        self.found.append(partition)
        fetched.append(
            PartitionFetched(
                asked.partition,
                0,
                partition.high_watermark,
                bound if is_committed else partition.last_stable_offset,
                partition.log_start_offset,
                b"" if piece is None else piece,
                () if is_committed else None,
                removal_offset=-1 if self._leading is None else _removal_offset(partition, asked),
            )
        )

    def _partition_of(self, name: Topic, asked: FetchPartition, fetched: Fetched) -> Partition | None:
        """Return the partition to read. None if the error that refuses it was added to ``fetched``."""
        try:
            topic = self._find(name)
            if topic is None:
                raise _unknown(name)
            if self._any_replica:
                partition = topic.readable(asked.partition)
            else:
                partition = topic.partition(asked.partition, asked.current_leader_epoch)
        except KafkaError as error:
            if error.code in _ELSEWHERE:
                self.has_failed = True
            else:
                self.missing += 1
            fetched.append(PartitionFetched(asked.partition, error.code))
            return None
        if self._refused and (code := self._refused.get((name, asked.partition))):
            self.has_failed = True
            fetched.append(PartitionFetched(asked.partition, code))
            return None
        return partition

    def _unread(
        self, partition: Partition, asked: FetchPartition, reason: KafkaError | LogDiverged | ReadElsewhere
    ) -> PartitionFetched[FileSlice]:
        """Return the response for a partition that is not read, with the reason."""
        if isinstance(reason, ReadElsewhere):
            return _without_records(partition)._replace(preferred_read_replica=reason.replica)
        if isinstance(reason, LogDiverged):
            response = _diverged(partition, reason)
            if self._leading is None:
                return response
            return response._replace(removal_offset=_removal_offset(partition, asked))
        return PartitionFetched(asked.partition, _code_of(reason, partition, asked.fetch_offset))

    def _bound(self, partition: Partition) -> int:
        return partition.readable_to(committed=self._is_committed, follower=self._is_follower)

    def _piece(
        self, partition: Partition, asked: FetchPartition, bound: int
    ) -> tuple[FileSlice | None, bool]:
        """Return the records below ``bound``, and whether they were appended lately.

        Raises KafkaError, NotResident, LogDiverged, ReadElsewhere.
        """
        if asked.current_leader_epoch >= 0:
            check_leader_epoch(partition, asked.current_leader_epoch)
        offset = asked.fetch_offset
        if self._leading is not None and offset < partition.log.removal_offset:
            self._leading.check_removals(partition, self._request.replica_id, offset)
        if self._closest is not None and partition.is_leader:
            self._closest.check(partition, offset)
        if asked.last_fetched_epoch >= 0:
            check_last_fetched(partition, asked.last_fetched_epoch, offset)
        if offset == bound and not partition.is_offline:
            return None, True  # where most partitions of a large request are
        first, left = self.size == 0, self._bytes_max - self.size
        limit = asked.max_bytes if asked.max_bytes < left else left
        if limit <= 0:  # once the limit is passed it is below zero
            if not first:
                return None, True
            limit = 0
        log = partition.log
        if log.reader.is_recent(offset):
            return log.reader.read(offset, limit, upper_bound=bound, min_one_batch=first), True
        try:
            return partition.read(
                offset,
                limit,
                committed=self._is_committed,
                follower=self._is_follower,
                min_one_batch=first,
                wants_records=not self._is_follower,
            ), False
        except NotResident:
            self._rounds.check(partition)
            raise

    def look(self) -> list[Job]:
        """See that the records can be sent without waiting for the disk, and which of them were aborted;
        returns what has to be read in for that.
        """
        jobs: list[Job] = []
        for fetched, place, partition, asked, piece in self.looks:
            try:
                self._check_resident(partition, asked, piece)
                if self._is_committed:
                    aborted = self._aborted(partition, asked.fetch_offset, piece)
                    fetched[place] = fetched[place]._replace(aborted=aborted)
            except KafkaError as error:
                fetched[place] = PartitionFetched(asked.partition, error.code)
            except NotResident as need:
                jobs.append(need.job)
        if jobs:
            self._rounds.of_records += 1
        return jobs

    def _check_resident(self, partition: Partition, asked: FetchPartition, piece: FileSlice) -> None:
        """Raise NotResident where sending would wait for the disk; the end of the log is not looked at."""
        if partition.log.reader.is_recent(asked.fetch_offset) or is_resident(piece):
            return
        if self._rounds.failure is not None:
            self._rounds.check(partition)
        if self._rounds.of_records < RECORD_ROUNDS_MAX:
            raise NotResident(partial(warm, piece))

    def _aborted(self, partition: Partition, start: int, piece: FileSlice) -> list[tuple[int, int]]:
        """Aborted transactions with records in the piece, by their first offsets."""
        try:
            with CACHED_ONLY:
                end = partition.log.reader.end_of(piece, start)
            return [(entry.producer_id, entry.first_offset) for entry in partition.aborted(start, end)]
        except NotResident:
            self._rounds.check(partition)
            raise


def _without_records(partition: Partition) -> PartitionFetched[FileSlice]:
    return PartitionFetched(
        partition.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
    )


def _diverged(partition: Partition, end: LogDiverged) -> PartitionFetched[FileSlice]:
    """Return where the reader's history diverges; a follower does not know, since it may lack records itself.

    A follower's log may be shorter after a power loss, so it asks the client to wait for the leader.
    """
    if not partition.is_leader:
        return PartitionFetched(partition.index, ErrorCode.OFFSET_NOT_AVAILABLE)
    return _without_records(partition)._replace(diverging=(end.epoch, end.end_offset))


def _removal_offset(partition: Partition, asked: FetchPartition) -> int:
    """Return the log's removal offset for a follower that copies records before it, else -1."""
    removal_offset = partition.log.removal_offset
    return removal_offset if asked.fetch_offset < removal_offset else -1


def _code_of(error: KafkaError, partition: Partition, offset: int) -> int:
    """Return the error's code for a reader.

    A follower answers OFFSET_NOT_AVAILABLE in place of OFFSET_OUT_OF_RANGE for an offset that it will or may
    still receive (KIP-392). A reader that takes it for the leader would otherwise start at another offset.
    """
    if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or partition.is_leader or partition.role is None:
        return error.code
    known = partition.role.leader_high_watermark
    if partition.log_end_offset < offset and (known < 0 or offset <= known):
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return error.code


def _unknown(name: Topic) -> KafkaError:
    if isinstance(name, bytes):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {name.hex()}")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
