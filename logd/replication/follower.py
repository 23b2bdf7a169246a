"""The state machine of one followed partition: from where to fetch, and where to truncate.

A follower never truncates to its high watermark, because that lags behind the leader's: it arrives one fetch
later than the records. A follower that truncated there on a restart and was elected next would lose
acknowledged records (KIP-101). It truncates where leader epochs show that the histories diverge. The leader
reports that in its response to a fetch, which carries the epoch of the follower's last record. This is
repeated until the two agree: one response need not find the place if the other side does not know several of
the epochs (KIP-279).

`Follower.next` says what to do next. The owner of the `Follower` fetches, truncates and appends. It also
backs off if a response left `next` as it was. A fetch tells the leader that this replica has everything
before the offset. So if an append needs a flush first (flush.messages), the owner waits for that before the
next fetch.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from logd.replication.divergence import NOTHING_STAYS, Divergence, EpochTable


class ReplicaLog(EpochTable, Protocol):
    """The follower's own log, which the owner of the `Follower` changes."""

    @property
    def latest_epoch(self) -> int: ...

    def epoch_of(self, offset: int, /) -> int:
        """Return the leader epoch of the record at ``offset``; -1 if unknown."""


class Fetch(NamedTuple):
    """A request to fetch from ``offset``, from the leader of ``leader_epoch``.

    ``last_fetched_epoch`` is the epoch of the record before ``offset``, -1 if there is none.
    """

    offset: int
    last_fetched_epoch: int
    leader_epoch: int


class Truncate(NamedTuple):
    """A request to truncate the log to ``offset``, and to remove leader epochs that start there or later.

    At the log's end, only the epochs are removed. ``fully``: drop the whole log and start again at
    ``offset``. ``misses_removals``: the reason is that the leader has removed deletions or markers that this
    replica had not copied. Call `Follower.truncated` afterwards.
    """

    offset: int
    fully: bool = False
    misses_removals: bool = False


class Standby(Enum):
    """The missing information without which nothing can be fetched."""

    LEADER_OFFSETS = "leader offsets"
    """Ask the leader for its earliest and latest offset, and call `Follower.leader_offsets`."""
    IMAGE = "image"
    """Wait for the image: the leader has a newer epoch."""


Next: TypeAlias = Fetch | Truncate | Standby


class Follower:
    """A followed partition, under one leader and leader epoch.

    ``high_watermark`` is the leader's, but at most the end of the own log. It only rises, except at
    truncations. ``leader_high_watermark`` is the last one that the leader sent; -1 before the first response.

    For another leader or leader epoch, make a new `Follower` with the ``high_watermark`` of the previous one,
    or of the `Leader` if this broker led. Make it when no work on the log is under way in a thread.
    """

    __slots__ = ("_log", "high_watermark", "leader", "leader_epoch", "leader_high_watermark", "next")

    def __init__(self, log: ReplicaLog, *, leader: int, leader_epoch: int, high_watermark: int) -> None:
        self._log = log
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.high_watermark = min(high_watermark, log.log_end_offset)
        self.leader_high_watermark = -1
        self.next: Next = self._begin()

    def _begin(self) -> Next:
        """Return the first action: a fetch, or a truncation to remove an epoch that started here without a
        record.

        The leader may still send records of an older epoch, and a log's epochs only rise.
        """
        fetch = self._fetch()
        if self._log.latest_epoch > fetch.last_fetched_epoch:
            return Truncate(fetch.offset)
        return fetch

    def _fetch(self) -> Fetch:
        end = self._log.log_end_offset
        return Fetch(end, self._log.epoch_of(end - 1), self.leader_epoch)

    # Answers

    def answered(self, request: Fetch, error_code: int = 0, diverging: tuple[int, int] | None = None) -> bool:
        """Handle the leader's response to ``request``; return True if its records are to be appended.

        Then call `appended`, also if there are no records. If the result is False, look at ``next``, and back
        off if it still is ``request``. A response to an outdated request (before a truncation, or to another
        leader) is ignored.
        """
        if request != self.next:
            return False
        if error_code:
            self._refused(error_code)
            return False
        if diverging is not None:
            self.next = self._part(request, Divergence(*diverging))
            return False
        return True

    def _refused(self, error_code: int) -> None:
        """Handle an error of the leader; errors other than these two are retried.

        UNKNOWN_LEADER_EPOCH and NOT_LEADER_OR_FOLLOWER are retried as well: the leader has not yet learned
        that it leads, and this broker would get no further image.
        """
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.next = Standby.LEADER_OFFSETS
        elif error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self.next = Standby.IMAGE

    def _part(self, request: Fetch, leader: Divergence) -> Next:
        """Return what to do about a divergence: this replica and the leader agree at most on
        ``leader.epoch``, up to ``leader.end_offset``.

        If this log does not have that epoch, all later epochs are removed; the next fetch asks about the
        epoch before.
        """
        if leader.epoch == NOTHING_STAYS:
            return Truncate(leader.end_offset, fully=True, misses_removals=True)
        epoch, end = self._log.end_offset_for_epoch(leader.epoch)
        if epoch == leader.epoch or epoch < 0:
            end = min(end, leader.end_offset) if epoch >= 0 else leader.end_offset
        if end >= request.offset:
            return request  # the leader contradicts itself: no truncation would follow
        return self._truncate_to(end)

    def _truncate_to(self, offset: int) -> Truncate:
        return Truncate(offset, fully=offset < self._log.log_start_offset)

    def leader_offsets(self, log_start_offset: int, log_end_offset: int) -> None:
        """Handle the leader's log start and end offsets, which were requested after OFFSET_OUT_OF_RANGE.

        A leader whose log ends before this one was elected uncleanly: truncate what it lost; the rest is then
        compared by epochs. A leader whose log starts after this one's end has deleted the records needed
        here.
        """
        if self.next is not Standby.LEADER_OFFSETS:
            return
        end = self._log.log_end_offset
        if log_end_offset < end:
            self.next = self._truncate_to(log_end_offset)
        elif log_start_offset > end:
            self.next = Truncate(log_start_offset, fully=True)
        else:
            self.next = self._fetch()

    # What the owner has done

    def check_base_offset(self, base_offset: int, leader_log_start: int) -> Truncate | None:
        """Check the base offset of the first fetched batch before its append; return a truncation to do
        first, or None.

        An offset after the own log end is fine: compaction leaves gaps. The batch with the leader's log start
        may start before that offset, and before the own log end. If this log is empty, or holds nothing that
        the leader still has, it starts again with that batch. Carry out that truncation without calling
        `truncated`. Raises KafkaError(CORRUPT_MESSAGE) if the batch would overwrite others.
        """
        log = self._log
        if base_offset >= log.log_end_offset:
            return None
        if log.log_end_offset in (log.log_start_offset, leader_log_start):
            return Truncate(base_offset, fully=True)
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{log.tp}: broker {self.leader} sent a batch of offset {base_offset}, "
            f"the log ends at {log.log_end_offset}",
        )

    def appended(self, leader_high_watermark: int) -> bool:
        """Record that a response's records were appended; return True if the high watermark has risen."""
        if isinstance(self.next, Fetch) and self._log.log_end_offset != self.next.offset:
            self.next = self._fetch()
        self.leader_high_watermark = leader_high_watermark
        high_watermark = min(leader_high_watermark, self._log.log_end_offset)
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        return True

    def truncated(self) -> bool:
        """Record that the truncation of ``next`` was carried out; return True if it removed committed
        records.

        After a clean election it never does.
        """
        self.next = self._fetch()
        end = self._log.log_end_offset
        if self.high_watermark <= end:
            return False
        self.high_watermark = end
        return True
