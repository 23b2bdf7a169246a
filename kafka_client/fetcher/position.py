"""The position of fetching in one partition, and its buffered batches."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import MillstreamError
from kafka_client.fetcher.epochs import NO_EPOCH, ReadEpochs
from kafka_client.fetcher.fetched import Fetched
from kafka_client.topic_partition import TopicPartition

NO_OFFSET = -1


class PositionWatcher(Protocol):
    """The receiver of every change of a position, so that nothing has to iterate over all positions."""

    def changed(self, position: FetchPosition) -> None:
        """Handle a change of the position."""


class FetchPosition:
    """The position in one assigned partition.

    `position` is what the user gets next, `fetch_offset` what is requested next; the offsets between them are
    buffered. Negative ones must still be looked up (-1 latest, -2 earliest). `version` grows with every seek:
    a response to a request of an older version is stale. A parked partition is not fetched until a seek; its
    `error` is raised once. `not_before`: the end of a backoff, in the loop's time.

    `node` is the leader. `replica` is fetched from instead until `replica_until` (KIP-392). `leader_epoch`:
    the leader's, from metadata; `epochs`: those of the records read. `unvalidated`: the leader's epoch has
    changed, and its log must be compared with the records read before more is fetched. `high_watermark`,
    `last_stable_offset`, `log_start_offset`: from the last response (-1: unknown).

    `end`: nothing at or after this offset is requested; None: no limit.

    State is only changed by methods, which notify the watcher. `counted_bytes`, `listed_in` and `listed_at`
    belong to the watcher.
    """

    own_log_start = -1
    """The log start offset of a reader that is no follower."""

    __slots__ = (
        "_watcher",
        "buffered",
        "buffered_bytes",
        "counted_bytes",
        "end",
        "epochs",
        "error",
        "fetch_offset",
        "high_watermark",
        "last_stable_offset",
        "leader_epoch",
        "listed_at",
        "listed_in",
        "log_start_offset",
        "missing_since",
        "node",
        "not_before",
        "parked",
        "paused",
        "position",
        "raised",
        "replica",
        "replica_until",
        "topic_id",
        "tp",
        "unvalidated",
        "version",
    )

    def __init__(
        self,
        tp: TopicPartition,
        offset: int,
        epoch: int,
        version: int,
        watcher: PositionWatcher,
        end: int | None = None,
    ) -> None:
        self.tp = tp
        self._watcher = watcher
        self.position = offset
        self.fetch_offset = offset
        self.end = end
        self.version = version
        self.paused = False
        self.buffered: deque[Fetched] = deque()
        self.buffered_bytes = 0
        self.counted_bytes = 0
        self.error: MillstreamError | None = None
        self.raised: MillstreamError | None = None
        self.parked = False
        self.node = NO_NODE
        self.replica = NO_NODE
        self.replica_until = 0.0
        self.listed_at = NO_NODE
        self.listed_in: dict[TopicPartition, FetchPosition] | None = None
        self.leader_epoch = NO_EPOCH
        self.epochs = ReadEpochs(offset, epoch)
        self.unvalidated = False
        self.topic_id = b""
        self.not_before = 0.0
        self.missing_since: float | None = None
        self._forget_ends()

    # --- what it needs ---

    @property
    def needs_offset(self) -> bool:
        """True if the offset must be looked up before anything can be fetched."""
        return self.fetch_offset < 0 and not self.parked

    @property
    def homeless(self) -> bool:
        """True if the leader must be looked up."""
        return self.node == NO_NODE and not self.parked

    @property
    def needs_validation(self) -> bool:
        """True if the leader's log must be compared with the records read."""
        return self.unvalidated and not self.parked and self.node != NO_NODE

    @property
    def needs_lookup(self) -> bool:
        """True if anything must be looked up before the partition can be fetched."""
        return not self.parked and (self.node == NO_NODE or self.fetch_offset < 0 or self.unvalidated)

    @property
    def is_fetchable(self) -> bool:
        """True if more may be requested from `source`, apart from a backoff and room in the buffer."""
        if self.paused or self.parked or self.unvalidated or self.fetch_offset < 0:
            return False
        return self.end is None or self.fetch_offset < self.end

    @property
    def source(self) -> int:
        """The broker to fetch from."""
        return self.node if self.replica == NO_NODE else self.replica

    @property
    def fetch_epoch(self) -> int:
        """The leader epoch of the record before `fetch_offset`, -1 if it is unknown."""
        return self.epochs.before(self.fetch_offset)

    # --- lookups ---

    def found_leader(self, node: int, leader_epoch: int, topic_id: bytes) -> None:
        """Set the leader and its epoch. A topic that was created again has none of the records read."""
        if topic_id != self.topic_id and any(self.topic_id):
            self.epochs.begin(self.fetch_offset, NO_EPOCH)
            self._forget_ends()
        if 0 <= leader_epoch != self.leader_epoch and self.fetch_epoch >= 0:
            self.unvalidated = True
        self.node, self.leader_epoch, self.topic_id = node, leader_epoch, topic_id
        self._watcher.changed(self)

    def lose_leader(self) -> None:
        """Have the leader looked up again."""
        self.node = self.replica = NO_NODE
        self._watcher.changed(self)

    def read_from(self, replica: int, until: float) -> None:
        """Fetch from this replica instead of the leader until then (KIP-392)."""
        self.replica, self.replica_until = replica, until
        self._watcher.changed(self)

    def read_from_leader(self) -> None:
        """Fetch from the leader again."""
        self.replica = NO_NODE
        self._watcher.changed(self)

    def back_off(self, until: float) -> None:
        """Request nothing more until then."""
        self.not_before = until
        self._watcher.changed(self)

    def found_offset(self, offset: int) -> None:
        """Set the offset that was looked up."""
        self.fetch_offset = offset
        self.epochs.jump(offset)
        self.unvalidated = False
        if not self.buffered:
            self.position = offset
        self._watcher.changed(self)

    def find_offset(self, reset_offset: int) -> None:
        """Have an offset looked up, the log's start or end, at which to continue."""
        self.unvalidated = False
        self.fetch_offset = reset_offset
        if not self.buffered:
            self.position = reset_offset
        self._watcher.changed(self)

    def validated(self) -> None:
        """Record that the leader's log has the records read."""
        self.unvalidated = False
        self._watcher.changed(self)

    def diverges_at(self, epoch: int, end_offset: int) -> int:
        """Return the offset from which on the leader's log differs from the records read; -1: from an unknown
        one.

        `epoch` is the leader's largest epoch that is not above `fetch_epoch`, and ends at `end_offset`. So
        records of later epochs that were read are not in its log.
        """
        if epoch < 0 or end_offset < 0:
            return -1
        first_gone = self.epochs.first_above(epoch)
        return end_offset if first_gone is None else min(end_offset, first_gone)

    def park(self, error: MillstreamError | None) -> None:
        """Stop fetching until a seek; the user gets `error` after the buffered batches."""
        self.parked = True
        self.error = error
        self._watcher.changed(self)

    def passed_over(self, fetched: Fetched) -> None:
        """Continue after offsets that the broker cannot read; a buffered entry says so."""
        self.parked = False
        self.put(fetched)

    def raise_error(self) -> MillstreamError | None:
        """Return the error to raise now; each is returned once."""
        self.raised, self.error = self.error, None
        self._watcher.changed(self)
        return self.raised

    # --- batches ---

    def heard_ends(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        """Set the log's range from a broker's response, without notifying the watcher."""
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset

    def succeed(self, before: FetchPosition) -> None:
        """Take the log's range from the partition's removed position: the broker only sends it once."""
        self.heard_ends(before.high_watermark, before.last_stable_offset, before.log_start_offset)

    def _forget_ends(self) -> None:
        self.high_watermark = self.last_stable_offset = self.log_start_offset = NO_OFFSET

    def put(self, fetched: Fetched) -> None:
        """Buffer fetched batches; fetching continues after them."""
        self.buffered.append(fetched)
        self.buffered_bytes += len(fetched.buffer)
        self.fetch_offset = fetched.next_offset
        self.epochs.note(fetched.buffer, fetched.leader_epoch)
        self._watcher.changed(self)

    def take(self, max_bytes: int, max_records: int) -> tuple[Fetched, bool]:
        """Return the oldest buffered batches, and True if they were split to fit."""
        fetched, rest = self.buffered.popleft().cut(max_bytes, max_records)
        if rest is not None:
            self.buffered.appendleft(rest)
        self.buffered_bytes -= len(fetched.buffer)
        self.position = fetched.next_offset
        self._watcher.changed(self)
        return fetched, rest is not None

    def pause(self) -> None:
        """Return nothing and request nothing more."""
        self.paused = True
        self._watcher.changed(self)

    def resume(self) -> None:
        """End a pause."""
        self.paused = False
        self._watcher.changed(self)

    def drop_buffered(self, version: int) -> None:
        """Drop buffered batches, to fetch them again; responses to earlier requests are stale."""
        self._drop()
        self.version = version
        self._watcher.changed(self)

    def seek(self, offset: int, epoch: int, version: int) -> None:
        """Start again at `offset`; the record before it is of leader epoch `epoch` (-1: unknown)."""
        self._drop()
        self.version = version
        self.position = self.fetch_offset = offset
        self.epochs.begin(offset, epoch)
        self.unvalidated = epoch >= 0 and self.leader_epoch >= 0
        self.parked, self.error, self.raised = False, None, None
        self.missing_since, self.not_before = None, 0.0
        self._watcher.changed(self)

    def _drop(self) -> None:
        self.buffered_bytes = 0
        if self.buffered:
            self.buffered.clear()
            self.fetch_offset = self.position
            self.unvalidated = self.unvalidated and self.fetch_epoch >= 0
