"""An attempt to answer a Fetch: each partition is read, then checked before the records are sent.

Work that would wait for the disk becomes a job, to be run in a thread before the next attempt.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.fetch import PartitionFetched
from logd.broker.cluster.replica_selector import ReadElsewhere
from logd.broker.partition.fencing import LogDiverged, check_last_fetched, check_leader_epoch
from logd.storage import NotResident, is_resident, warm
from logd.storage.disk import CACHED_ONLY

if TYPE_CHECKING:
    from kafka_client.records.slice import FileSlice
    from kafka_client.wire.fetch import FetchPartition, Topic
    from logd.api.fetch.fetch_reader import FetchReader
    from logd.broker.fetching.cold_reads import Job
    from logd.broker.fetching.fetch_session import SessionPartition
    from logd.broker.partition.partition import Partition

    Fetched: TypeAlias = list[PartitionFetched[FileSlice]]
    Look: TypeAlias = tuple[Fetched, int, Partition, FetchPartition, FileSlice]
    """Records to check before they are sent, with the list of responses and the index of theirs."""

_ELSEWHERE = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    )
)
"""Errors of partitions that another broker leads; the response does not wait then."""

RECORD_ROUNDS_MAX = 2
"""How often the records of one response are read into memory; after that they are sent from the disk."""


class FetchAttempt:
    """An attempt to answer `reader`: call `read` for each partition, then `look`.

    `watchable` are the partitions that exist and may have news; `missing` is the number of those that do not
    exist. `jobs` have to be run before a partition can be read. `looks` is the input of `look`. The response
    does not wait if `has_failed`, nor if `has_news`: a follower has to hear of a new log start offset or high
    watermark.
    """

    __slots__ = (
        "_bytes_max",
        "_reader",
        "has_failed",
        "has_news",
        "jobs",
        "looks",
        "missing",
        "size",
        "watchable",
    )

    def __init__(self, reader: FetchReader, bytes_max: int) -> None:
        self._reader = reader
        self._bytes_max = bytes_max
        self.size = self.missing = 0
        """Bytes of records so far, and missing partitions."""
        self.has_failed = self.has_news = False
        self.watchable: list[Partition] = []
        self.jobs: list[Job] = []
        self.looks: list[Look] = []

    def read(
        self,
        name: Topic,
        request: FetchPartition,
        session_partition: SessionPartition | None,
        fetched: Fetched,
    ) -> None:
        """Add a partition's response to ``fetched``, unless the session has no news of it."""
        partition = self._partition_of(name, request, fetched)
        if partition is None:
            return
        reader = self._reader
        is_committed = reader.is_committed
        bound = partition.high_watermark if reader.is_plain else self._bound(partition)
        piece, is_recent = None, True
        try:
            piece, is_recent = self._piece(partition, request, bound)
        except (KafkaError, LogDiverged, ReadElsewhere) as reason:
            self.has_failed = True
            fetched.append(self._unread(partition, request, reason))
            return
        except NotResident as need:
            self.jobs.append(need.job)
        if piece is not None and reader.throttle is not None:
            piece = reader.throttle.let_through(partition, piece)
        if piece is not None:
            self.size += piece.length
            if is_committed or not is_recent:
                self.looks.append((fetched, len(fetched), partition, request, piece))
        elif session_partition is not None and session_partition.knows(partition):
            if request.fetch_offset >= bound:
                session_partition.watch(partition)
            else:
                self.watchable.append(partition)
            return
        elif session_partition is not None and reader.is_follower:
            self.has_news |= (
                reader.is_prompt or session_partition.log_start_offset != partition.log_start_offset
            )
        self.watchable.append(partition)
        fetched.append(
            PartitionFetched(
                request.partition,
                0,
                partition.high_watermark,
                bound if is_committed else partition.last_stable_offset,
                partition.log_start_offset,
                b"" if piece is None else piece,
                () if is_committed else None,
                removal_offset=-1 if reader.leading is None else _removal_offset(partition, request),
            )
        )

    def _partition_of(self, name: Topic, request: FetchPartition, fetched: Fetched) -> Partition | None:
        """Return the partition to read. None if the error that refuses it was added to ``fetched``."""
        reader = self._reader
        try:
            topic = reader.find(name)
            if reader.refusal_of is not None and (refusal := reader.refusal_of(name, topic)) is not None:
                raise refusal
            if topic is None:
                raise _unknown(name)
            if reader.any_replica:
                partition = topic.readable(request.partition)
            else:
                partition = topic.partition(request.partition, request.current_leader_epoch)
        except KafkaError as error:
            if error.code in _ELSEWHERE:
                self.has_failed = True
            else:
                self.missing += 1
            fetched.append(PartitionFetched(request.partition, error.code))
            return None
        if reader.refused and (code := reader.refused.get((name, request.partition))):
            self.has_failed = True
            fetched.append(PartitionFetched(request.partition, code))
            return None
        return partition

    def _unread(
        self, partition: Partition, request: FetchPartition, reason: KafkaError | LogDiverged | ReadElsewhere
    ) -> PartitionFetched[FileSlice]:
        """Return the response for a partition that is not read, with the reason."""
        if isinstance(reason, ReadElsewhere):
            return _without_records(partition)._replace(preferred_read_replica=reason.replica)
        if isinstance(reason, LogDiverged):
            response = _diverged(partition, reason)
            if self._reader.leading is None:
                return response
            return response._replace(removal_offset=_removal_offset(partition, request))
        return PartitionFetched(request.partition, _code_of(reason, partition, request.fetch_offset))

    def _bound(self, partition: Partition) -> int:
        return partition.readable_to(committed=self._reader.is_committed, follower=self._reader.is_follower)

    def _piece(
        self, partition: Partition, request: FetchPartition, bound: int
    ) -> tuple[FileSlice | None, bool]:
        """Return the records below ``bound``, and whether they were appended lately.

        Raises KafkaError, NotResident, LogDiverged, ReadElsewhere.
        """
        reader = self._reader
        if request.current_leader_epoch >= 0:
            check_leader_epoch(partition, request.current_leader_epoch)
        offset = request.fetch_offset
        if reader.leading is not None and offset < partition.log.removal_offset:
            reader.leading.check_removals(partition, reader.request.replica_id, offset)
        if reader.replica_selector is not None and partition.is_leader:
            reader.replica_selector.check(partition, offset)
        if request.last_fetched_epoch >= 0:
            check_last_fetched(partition, request.last_fetched_epoch, offset)
        if offset == bound and not partition.is_offline:
            return None, True  # where most partitions of a large request are
        first, left = self.size == 0, self._bytes_max - self.size
        limit = request.max_bytes if request.max_bytes < left else left
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
                committed=reader.is_committed,
                follower=reader.is_follower,
                min_one_batch=first,
                wants_records=not reader.is_follower,
            ), False
        except NotResident:
            self._reader.rounds.check(partition)
            raise

    def look(self) -> list[Job]:
        """Check that the records can be sent without waiting for the disk, and add the aborted transactions.

        Return jobs that read the records into memory, to be run before the next attempt.
        """
        jobs: list[Job] = []
        for fetched, place, partition, request, piece in self.looks:
            try:
                self._check_resident(partition, request, piece)
                if self._reader.is_committed:
                    aborted = self._aborted(partition, request.fetch_offset, piece)
                    fetched[place] = fetched[place]._replace(aborted=aborted)
            except KafkaError as error:
                fetched[place] = PartitionFetched(request.partition, error.code)
            except NotResident as need:
                jobs.append(need.job)
        if jobs:
            self._reader.rounds.of_records += 1
        return jobs

    def _check_resident(self, partition: Partition, request: FetchPartition, piece: FileSlice) -> None:
        """Raise NotResident where sending would wait for the disk; the end of the log is not looked at."""
        if partition.log.reader.is_recent(request.fetch_offset) or is_resident(piece):
            return
        if self._reader.rounds.failure is not None:
            self._reader.rounds.check(partition)
        if self._reader.rounds.of_records < RECORD_ROUNDS_MAX:
            raise NotResident(partial(warm, piece))

    def _aborted(self, partition: Partition, start: int, piece: FileSlice) -> list[tuple[int, int]]:
        """Return the aborted transactions with records in the piece, by their first offsets."""
        try:
            with CACHED_ONLY:
                end = partition.log.reader.end_of(piece, start)
            return [(entry.producer_id, entry.first_offset) for entry in partition.aborted(start, end)]
        except NotResident:
            self._reader.rounds.check(partition)
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


def _removal_offset(partition: Partition, request: FetchPartition) -> int:
    """Return the log's removal offset for a follower that copies records before it, else -1."""
    removal_offset = partition.log.removal_offset
    return removal_offset if request.fetch_offset < removal_offset else -1


def _code_of(error: KafkaError, partition: Partition, offset: int) -> int:
    """Return the error's code for a reader.

    A follower answers OFFSET_NOT_AVAILABLE in place of OFFSET_OUT_OF_RANGE for an offset that it will or may
    still receive (KIP-392). A reader that takes it for the leader would otherwise start at another offset.
    """
    if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or partition.is_leader or partition.role is None:
        return error.code
    high_watermark = partition.role.leader_high_watermark
    if partition.log_end_offset < offset and (high_watermark < 0 or offset <= high_watermark):
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return error.code


def _unknown(name: Topic) -> KafkaError:
    if isinstance(name, bytes):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {name.hex()}")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
