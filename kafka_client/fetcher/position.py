"""Where fetching of one partition stands, and what is buffered of it."""

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
    """Hears of every change of a position, so that nobody has to look through all of them."""

    def changed(self, held: FetchPosition) -> None:
        """Something of the position is not as it was."""


class FetchPosition:
    """One assigned partition.

    `position` is what the user gets next, `fetch_offset` what is asked of the broker next; between them
    lies what is buffered. Negative ones are still to be looked up (-1 latest, -2 earliest). `version` grows
    with every seek: a response to a question of an older version is stale. A parked partition is not
    fetched until a seek; its `error` is raised once. `not_before`: end of a backoff, in the loop's time.
    `node` leads the partition; `replica` is fetched from in its place until `replica_until` (KIP-392).
    `leader_epoch`: the leader's, as metadata has it; `epochs`: those of the records read. `unvalidated`: the
    leader's has changed, and whether its log still has what was read is to be asked before more is fetched.
    `high_watermark`, `last_stable_offset`, `log_start_offset`: as they were told last (-1: not known).

    State is changed by methods, which tell the watcher; readers may look at it any time. `counted_bytes`,
    `listed_in` and `listed_at` are the watcher's notes.
    """

    own_log_start = -1
    """It is no follower's."""

    __slots__ = (
        "_watcher",
        "buffered",
        "buffered_bytes",
        "counted_bytes",
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
        self, tp: TopicPartition, offset: int, epoch: int, version: int, watcher: PositionWatcher
    ) -> None:
        self.tp = tp
        self._watcher = watcher
        self.position = offset
        self.fetch_offset = offset
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
        """Whether the offset has to be looked up before anything can be fetched."""
        return self.fetch_offset < 0 and not self.parked

    @property
    def homeless(self) -> bool:
        """Whether the leader has to be found."""
        return self.node == NO_NODE and not self.parked

    @property
    def needs_validation(self) -> bool:
        """Whether the leader has to be asked if its log has what was read."""
        return self.unvalidated and not self.parked and self.node != NO_NODE

    @property
    def needs_lookup(self) -> bool:
        """Whether anything has to be found out before the partition can be fetched."""
        return not self.parked and (self.node == NO_NODE or self.fetch_offset < 0 or self.unvalidated)

    @property
    def is_fetchable(self) -> bool:
        """Whether more may be asked of `source`, apart from a backoff and from room in the buffer."""
        return not (self.paused or self.parked or self.unvalidated) and self.fetch_offset >= 0

    @property
    def source(self) -> int:
        """The broker to fetch from."""
        return self.node if self.replica == NO_NODE else self.replica

    @property
    def fetch_epoch(self) -> int:
        """The leader epoch of the record before `fetch_offset`, -1 if it is not known."""
        return self.epochs.before(self.fetch_offset)

    # --- what is found out ---

    def found_leader(self, node: int, leader_epoch: int, topic_id: bytes) -> None:
        """Who leads, and in which epoch. A topic made anew under its name has nothing of what was read."""
        if topic_id != self.topic_id and any(self.topic_id):
            self.epochs.begin(self.fetch_offset, NO_EPOCH)
            self._forget_ends()
        if 0 <= leader_epoch != self.leader_epoch and self.fetch_epoch >= 0:
            self.unvalidated = True
        self.node, self.leader_epoch, self.topic_id = node, leader_epoch, topic_id
        self._watcher.changed(self)

    def lose_leader(self) -> None:
        """Have the leader found anew."""
        self.node = self.replica = NO_NODE
        self._watcher.changed(self)

    def read_from(self, replica: int, until: float) -> None:
        """Fetch from this replica in place of the leader for so long (KIP-392)."""
        self.replica, self.replica_until = replica, until
        self._watcher.changed(self)

    def read_from_leader(self) -> None:
        """Fetch from the leader again."""
        self.replica = NO_NODE
        self._watcher.changed(self)

    def back_off(self, until: float) -> None:
        """Ask for nothing more until then."""
        self.not_before = until
        self._watcher.changed(self)

    def found_offset(self, offset: int) -> None:
        """The offset looked up."""
        self.fetch_offset = offset
        self.epochs.jump(offset)
        self.unvalidated = False
        if not self.buffered:
            self.position = offset
        self._watcher.changed(self)

    def find_offset(self, reset_offset: int) -> None:
        """Have fetching go on where the log begins or ends."""
        self.unvalidated = False
        self.fetch_offset = reset_offset
        if not self.buffered:
            self.position = reset_offset
        self._watcher.changed(self)

    def validated(self) -> None:
        """The leader's log has what was read."""
        self.unvalidated = False
        self._watcher.changed(self)

    def diverges_at(self, epoch: int, end_offset: int) -> int:
        """From where on the leader's log, in which `epoch` ends at `end_offset`, is not what was read.

        `epoch` is the largest the leader has that is not above `fetch_epoch`; so what was read of later ones
        is not there. -1: it has none at all.
        """
        if epoch < 0 or end_offset < 0:
            return -1
        first_gone = self.epochs.first_above(epoch)
        return end_offset if first_gone is None else min(end_offset, first_gone)

    def park(self, error: MillstreamError | None) -> None:
        """Fetch no more until a seek; the user gets `error` once what is buffered is handed out."""
        self.parked = True
        self.error = error
        self._watcher.changed(self)

    def passed_over(self, fetched: Fetched) -> None:
        """Go on behind offsets that the broker cannot read; what is buffered says so."""
        self.parked = False
        self.put(fetched)

    def raise_error(self) -> MillstreamError | None:
        """The error to be raised now; it is given once."""
        self.raised, self.error = self.error, None
        self._watcher.changed(self)
        return self.raised

    # --- what comes and goes ---

    def heard_ends(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        """How far the log reaches, as a broker says; nobody has to act on it."""
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset

    def succeed(self, before: FetchPosition) -> None:
        """The partition was removed and added again: how far it reaches was told, and is told only once."""
        self.heard_ends(before.high_watermark, before.last_stable_offset, before.log_start_offset)

    def _forget_ends(self) -> None:
        self.high_watermark = self.last_stable_offset = self.log_start_offset = NO_OFFSET

    def put(self, fetched: Fetched) -> None:
        """Buffer what came; fetching goes on behind it."""
        self.buffered.append(fetched)
        self.buffered_bytes += len(fetched.buffer)
        self.fetch_offset = fetched.next_offset
        self.epochs.note(fetched.buffer, fetched.leader_epoch)
        self._watcher.changed(self)

    def take(self, max_bytes: int, max_records: int) -> tuple[Fetched, bool]:
        """Hand out the oldest of what is buffered, and whether it was cut between batches to fit."""
        fetched, rest = self.buffered.popleft().cut(max_bytes, max_records)
        if rest is not None:
            self.buffered.appendleft(rest)
        self.buffered_bytes -= len(fetched.buffer)
        self.position = fetched.next_offset
        self._watcher.changed(self)
        return fetched, rest is not None

    def pause(self) -> None:
        """Hand out nothing and ask for nothing more."""
        self.paused = True
        self._watcher.changed(self)

    def resume(self) -> None:
        """End a pause."""
        self.paused = False
        self._watcher.changed(self)

    def drop_buffered(self, version: int) -> None:
        """Forget what is buffered, to fetch it again; answers on their way are stale."""
        self._drop()
        self.version = version
        self._watcher.changed(self)

    def seek(self, offset: int, epoch: int, version: int) -> None:
        """Start anew at `offset`; the record before it was of leader epoch `epoch` (-1: not known)."""
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
