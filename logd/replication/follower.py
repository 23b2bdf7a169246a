"""One partition followed here: from where to fetch, and where to truncate if the leader's history is another.

A follower never truncates to its high watermark. That lags behind what is committed: it is learned one fetch
later than the records, so that a follower that restarts, cut off there and is elected next would lose what
was acknowledged (KIP-101). It truncates where leader epochs say that the histories part, by the leader's
answer to a fetch with the epoch of the last record held here; that is repeated until the two agree, since one
answer need not find the place where several epochs are unknown to the other side (KIP-279).

`Follower.next` says what has to happen next. Fetching, truncating and appending are its owner's, as is
backing off where an answer left `next` as it was. A fetch says that all before its offset is held: so where
an append is owed a flush (flush.messages), the owner waits for that before the next fetch.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from logd.replication.divergence import NOTHING_STAYS, Divergence, EpochTable


class ReplicaLog(EpochTable, Protocol):
    """The own log: read here, changed by its owner."""

    @property
    def latest_epoch(self) -> int: ...

    def epoch_of(self, offset: int, /) -> int:
        """The leader epoch of the record at ``offset``; -1 if unknown."""


class Fetch(NamedTuple):
    """Ask the leader for what is at ``offset``, as one who knows it as leader of ``leader_epoch``.

    ``last_fetched_epoch`` is that of the record before ``offset``, -1 if none is held.
    """

    offset: int
    last_fetched_epoch: int
    leader_epoch: int


class Truncate(NamedTuple):
    """Cut the log at ``offset``, with the leader epochs that begin there or later; at its end, only those.

    ``fully``: drop everything, and begin anew at ``offset``. ``misses_removals``: because the leader has
    removed deletions or markers that were not copied yet. Then call `Follower.truncated`.
    """

    offset: int
    fully: bool = False
    misses_removals: bool = False


class Standby(Enum):
    """Nothing can be fetched before something is known."""

    LEADER_OFFSETS = "leader offsets"
    """Ask the leader for its earliest and latest offset, and call `Follower.leader_offsets`."""
    IMAGE = "image"
    """The leader is of a newer epoch: its image is on the way."""


Next: TypeAlias = Fetch | Truncate | Standby


class Follower:
    """``high_watermark`` is the leader's as far as the own log goes. It only rises, but for truncations.
    ``leader_high_watermark`` is what the leader has said last; -1 before it has.

    For another leader or leader epoch there is a new `Follower`, with the ``high_watermark`` of the one
    before or, where this broker led, of the `Leader`. Make it when nothing is being done to the log: what the
    one before asked for, and is under way in a thread, ends first.
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
        """Fetch; but first forget an epoch that was begun here without a record: the leader may yet send
        records of an older one, and a log's epochs only rise.
        """
        fetch = self._fetch()
        if self._log.latest_epoch > fetch.last_fetched_epoch:
            return Truncate(fetch.offset)
        return fetch

    def _fetch(self) -> Fetch:
        end = self._log.log_end_offset
        return Fetch(end, self._log.epoch_of(end - 1), self.leader_epoch)

    # Answers

    def answered(self, asked: Fetch, error_code: int = 0, diverging: tuple[int, int] | None = None) -> bool:
        """Whether the records of an answer are to be appended, after which `appended` is to be called, also
        where there are none. If not, look at ``next``; back off if that is ``asked`` still.

        An answer to a question of another time, before a truncation or by another leader, is passed over.
        """
        if asked != self.next:
            return False
        if error_code:
            self._refused(error_code)
            return False
        if diverging is not None:
            self.next = self._part(asked, Divergence(*diverging))
            return False
        return True

    def _refused(self, error_code: int) -> None:
        """All but these two pass by themselves. UNKNOWN_LEADER_EPOCH and NOT_LEADER_OR_FOLLOWER do as well:
        it is the leader who has not heard yet that it is one, and no further image would come to us.
        """
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.next = Standby.LEADER_OFFSETS
        elif error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self.next = Standby.IMAGE

    def _part(self, asked: Fetch, leader: Divergence) -> Next:
        """Of what is held here the leader has at most ``leader.epoch``, up to ``leader.end_offset``.

        Where that epoch is unknown here, all of later ones goes; the next fetch asks about the one before.
        """
        if leader.epoch == NOTHING_STAYS:
            return Truncate(leader.end_offset, fully=True, misses_removals=True)
        epoch, end = self._log.end_offset_for_epoch(leader.epoch)
        if epoch == leader.epoch or epoch < 0:
            end = min(end, leader.end_offset) if epoch >= 0 else leader.end_offset
        if end >= asked.offset:
            return asked  # the leader contradicts itself: what it says parts nothing
        return self._truncate_to(end)

    def _truncate_to(self, offset: int) -> Truncate:
        return Truncate(offset, fully=offset < self._log.log_start_offset)

    def leader_offsets(self, log_start_offset: int, log_end_offset: int) -> None:
        """What the leader has, after OFFSET_OUT_OF_RANGE.

        A leader that ends before us was elected uncleanly, and this cuts off what it lost; what is left is
        compared by epochs then. One that starts after our end has deleted what we would need.
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
        """Before an append of fetched batches, of which the first begins at ``base_offset``.

        Later than the own log end is fine: compaction has left a gap. The batch that holds the leader's log
        start may begin before it, and before our end: where we hold nothing, or nothing that the leader has
        not deleted, the log begins anew with that batch. Carry that out first, without calling `truncated`.
        Raises KafkaError(CORRUPT_MESSAGE) where the batch would be written over others.
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
        """What came with an answer is in the log; whether the high watermark has risen."""
        if isinstance(self.next, Fetch) and self._log.log_end_offset != self.next.offset:
            self.next = self._fetch()
        self.leader_high_watermark = leader_high_watermark
        high_watermark = min(leader_high_watermark, self._log.log_end_offset)
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        return True

    def truncated(self) -> bool:
        """The truncation of ``next`` is carried out; whether it took something that was committed. After a
        clean election it never does.
        """
        self.next = self._fetch()
        end = self._log.log_end_offset
        if self.high_watermark <= end:
            return False
        self.high_watermark = end
        return True
