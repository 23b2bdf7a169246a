"""The state machine of one led partition: how far it is committed, who is in sync, and what to propose.

A follower that has everything may not name the partition for long: its fetch session only names what changes
(KIP-227). So followers that could not join the ISR when they last fetched are checked again when that may
have changed.

The high watermark is the smallest log end over the maximal ISR (see `isr`): all records before it are on
every broker that could be elected. It only rises. It is computed again when a follower that may have held it
back moves, never per record; with one replica it is the log end.

Below min.insync.replicas it does not rise (KIP-966): records on fewer brokers than promised are not
committed. An ISR of the leader alone waits for a follower that is about to join (caught up within
replica.lag.time.max.ms). Otherwise that follower could never catch up with a busy log.

Compaction removes deletions and transaction markers after a time. A follower without a removed deletion would
keep the deleted value. One without a removed marker would wait for ever for the transaction's end. So a
follower that has missed one drops its log and copies it again from the start (`must_copy_again`). While it
copies, nothing after its position is removed (`removable_to`).

The owner of a `Leader` sends proposals and backs off, wakes waiting requests, and writes the log. It makes a
new `Leader` for each leader epoch, also if the leader stays the same. Before it acknowledges records it also
has to check the broker's lease: this module knows no session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from logd.replication.divergence import (
    NOTHING_STAYS,
    Divergence,
    EpochTable,
    find_divergence,
    out_of_range,
)
from logd.replication.isr import InSync, Proposal
from logd.replication.progress import NEVER_MS, UNKNOWN, Progress

BrokerEpochs: TypeAlias = Callable[[int], int | None]
"""Returns the epoch of a broker's registration. None if it is not registered, or shuts down: then it may not
join.
"""

AWAIT_IMAGE = frozenset(
    (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)
"""Errors after which to wait for the controller's next image; retry after any other."""


class LeaderLog(EpochTable, Protocol):
    """The leader's own log, which the owner of the `Leader` changes."""

    @property
    def removal_offset(self) -> int:
        """1 + the highest offset of a deletion or transaction marker that compaction removed; 0 if none."""


class PartitionState(Protocol):
    """A partition's state in the image of the cluster."""

    @property
    def replicas(self) -> tuple[int, ...]: ...

    @property
    def isr(self) -> tuple[int, ...]: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def partition_epoch(self) -> int: ...


@dataclass(slots=True, kw_only=True)
class LeaderSettings:
    """Settings of a `Leader`: times in ms, sizes in brokers.

    They may be changed while the leader runs. Call `Leader.tick` after a change.
    """

    replica_lag_time_max_ms: int = 30_000
    """``replica.lag.time.max.ms``: a follower that has not caught up for this time leaves the ISR."""
    min_insync_replicas: int = 1
    """``min.insync.replicas`` of the topic; see `Leader.required_in_sync`."""


class Leader:
    """A partition led by this broker, in one leader epoch.

    Every method with a ``now_ms`` may raise ``high_watermark`` and make a proposal: check both after the
    call, the proposal by `take_proposal`.
    """

    __slots__ = (
        "_at_end",
        "_began_ms",
        "_brokers",
        "_followers",
        "_id",
        "_in_sync",
        "_log",
        "_own_end",
        "epoch_start_offset",
        "high_watermark",
        "leader_epoch",
        "log_end_offset",
        "replicas",
        "settings",
    )

    def __init__(
        self,
        log: LeaderLog,
        image: PartitionState,
        *,
        broker_id: int,
        brokers: BrokerEpochs,
        high_watermark: int,
        now_ms: int,
        settings: LeaderSettings,
    ) -> None:
        """Become leader. The log has already started the image's leader epoch at its end.

        ``high_watermark`` is the one that this broker had as a follower, or read from the checkpoint.
        """
        self._id = broker_id
        self._log = log
        self._brokers = brokers
        self.settings = settings
        self.leader_epoch = image.leader_epoch
        self.epoch_start_offset = self.log_end_offset = self._own_end = log.log_end_offset
        self.high_watermark = min(high_watermark, self.log_end_offset)
        self.replicas = image.replicas
        self._in_sync = InSync(image.isr, image.partition_epoch)
        self._followers = {
            replica: Progress(replica, now_ms if replica in image.isr else NEVER_MS)
            for replica in image.replicas
            if replica != broker_id
        }
        self._at_end: set[Progress] = set()
        self._began_ms = now_ms
        self._advance(now_ms)

    # What there is

    @property
    def isr(self) -> tuple[int, ...]:
        """The committed in-sync replicas."""
        return self._in_sync.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        """All brokers of every ISR that is or may be committed; the high watermark waits for them."""
        return self._in_sync.maximal

    @property
    def partition_epoch(self) -> int:
        """The partition epoch of the committed ISR."""
        return self._in_sync.partition_epoch

    @property
    def is_alone(self) -> bool:
        """True if there is no other replica: then the high watermark only depends on the own log."""
        return not self._followers

    @property
    def required_in_sync(self) -> int:
        """The number of in-sync replicas that acks=all needs: min.insync.replicas, or all if there are fewer
        replicas (KAFKA-15583).
        """
        return min(self.settings.min_insync_replicas, len(self.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """Return True if acks=all is refused, and the high watermark must not rise."""
        return len(self._in_sync.isr) < self.required_in_sync

    def progress(self, broker_id: int) -> Progress | None:
        """Return the progress of a follower; None if the broker is no replica. It must not be changed."""
        return self._followers.get(broker_id)

    @property
    def followers(self) -> Collection[Progress]:
        """The progress of all other replicas. It must not be changed."""
        return self._followers.values()

    def readable_from(self, offset: int) -> Sequence[Progress]:
        """Return the in-sync followers that hold ``offset``, to choose a consumer's preferred read replica
        (KIP-392).
        """
        return [
            follower
            for broker_id, follower in self._followers.items()
            if broker_id in self._in_sync.isr
            and follower.log_start_offset <= offset <= follower.log_end_offset
        ]

    # Producing

    def check_enough_replicas(self) -> None:
        """Raise KafkaError(NOT_ENOUGH_REPLICAS) if an acks=all append is not allowed: below
        min.insync.replicas.
        """
        if self.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self._log.tp}: min.insync.replicas is {self.settings.min_insync_replicas}, of "
                f"{len(self.replicas)} replicas {len(self._in_sync.isr)} are in sync: "
                f"{', '.join(map(str, self._in_sync.isr))}",
            )

    def appended(self, log_end_offset: int, now_ms: int, *, own_end: int | None = None) -> None:
        """Record an append to the own log, which now ends at ``log_end_offset``.

        If the append needs a flush first, only records before ``own_end`` count (see `flushed`). By default
        all do.
        """
        if self._at_end:
            for follower in self._at_end:
                follower.caught_up(now_ms)
            self._at_end.clear()
        self.log_end_offset = log_end_offset
        self._own_end = log_end_offset if own_end is None else own_end
        if not self._followers:
            self.high_watermark = self._own_end
        elif len(self._in_sync.maximal) == 1:
            self._advance(now_ms)

    def flushed(self, own_end: int, now_ms: int) -> None:
        """Record that the own log is flushed up to ``own_end``: records before it count."""
        self._own_end = own_end
        self._advance(now_ms)

    def acknowledgement(self, end_offset: int) -> ErrorCode | None:
        """Return the error code (NONE if committed) for an acks=all append up to ``end_offset``; None while
        it has to wait.
        """
        if self.high_watermark < end_offset:
            return None
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self.is_under_min_isr else ErrorCode.NONE

    # Followers

    def fetched(
        self,
        broker_id: int,
        offset: int,
        last_fetched_epoch: int,
        now_ms: int,
        *,
        current_leader_epoch: int,
        broker_epoch: int,
        log_start_offset: int = UNKNOWN,
    ) -> Divergence | None:
        """Record that a follower fetches at ``offset``; it holds all records before it, unless the histories
        diverge.

        Returns None if its fetch is to be answered with records. A divergence with the epoch `NOTHING_STAYS`
        tells it to copy the log again from the start. ``last_fetched_epoch`` is -1 for a follower without
        records.

        Raises KafkaError(FENCED_LEADER_EPOCH), (UNKNOWN_LEADER_EPOCH) and (OFFSET_OUT_OF_RANGE). Raises
        KafkaError(NOT_LEADER_OR_FOLLOWER) if the broker is no replica, or has registered again since
        (KIP-903). A fetch that raises or diverges changes nothing.
        """
        self._check_epoch(current_leader_epoch)
        follower = self._follower(broker_id, broker_epoch)
        divergence = self._divergence(offset, last_fetched_epoch)
        if divergence is not None:
            return divergence
        if self.must_copy_again(broker_id, offset):
            return Divergence(NOTHING_STAYS, self._log.log_start_offset)
        if offset <= self._log.log_start_offset:
            follower.removal_offset = 0
        before = follower.log_end_offset
        follower.fetched(offset, now_ms, self.log_end_offset)
        follower.log_start_offset, follower.broker_epoch = log_start_offset, broker_epoch
        if offset == self.log_end_offset:
            self._at_end.add(follower)
        else:
            self._at_end.discard(follower)
        if broker_id not in self._in_sync.maximal:
            self._maybe_expand(follower, now_ms)
        if before <= self.high_watermark:
            self._advance(now_ms)
        return None

    # Compaction

    def must_copy_again(self, broker_id: int, offset: int) -> bool:
        """Return True if a follower at ``offset`` must copy the log again, since it lacks a removed deletion
        or marker.

        A follower that copies the log from its start does not need deletions that were removed before. An
        in-sync replica has everything that is committed, and only committed records are compacted.
        """
        log = self._log
        if offset >= log.removal_offset or offset <= log.log_start_offset:
            return False
        follower = self._followers.get(broker_id)
        if follower is None or 0 <= follower.removal_offset <= offset:
            return False
        return broker_id not in self._in_sync.maximal or offset < self.high_watermark

    def removable_to(self, now_ms: int, last_fetch_ms: Callable[[int], int]) -> int:
        """Return the offset before which deletions and markers may be removed from the log now.

        It is the smallest log end of the followers that are registered and have fetched within
        replica.lag.time.max.ms. A follower that is away is not waited for, and may have to copy the log
        again. The position of a follower that has not fetched in this leader epoch is unknown: it has
        replica.lag.time.max.ms to fetch.

        ``last_fetch_ms`` returns when a broker last fetched anything from here, `NEVER_MS` if never: its
        session only names a partition that changes. Call `removed` in the same step as removing.
        """
        lag_ms, end = self.settings.replica_lag_time_max_ms, self.log_end_offset
        for follower in self._followers.values():
            broker_id, position = follower.broker_id, follower.log_end_offset
            if position >= end or self._brokers(broker_id) is None:
                continue
            if position != UNKNOWN:
                if now_ms - last_fetch_ms(broker_id) <= lag_ms:
                    end = position
            elif broker_id not in self._in_sync.maximal and now_ms - self._began_ms <= lag_ms:
                end = self._log.log_start_offset
        return end

    def removed(self, offset: int) -> None:
        """Record that deletions or markers before ``offset`` were removed from the log."""
        for follower in self._followers.values():
            if UNKNOWN < follower.removal_offset < offset:
                follower.removal_offset = offset

    def succeed(self, before: Leader) -> None:
        """Take the followers' removal offsets from this broker's `Leader` of the leader epoch just before.

        Nobody has written to the followers' logs in between, so followers that copy the log again can go on.
        """
        assert before.leader_epoch + 1 == self.leader_epoch, "another broker may have led meanwhile"
        for follower in before.followers:
            progress = self._followers.get(follower.broker_id)
            if progress is not None:
                progress.removal_offset = follower.removal_offset

    def _check_epoch(self, leader_epoch: int) -> None:
        if leader_epoch == self.leader_epoch:
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise KafkaError(code, f"{self._log.tp}: leader epoch {leader_epoch}, it is {self.leader_epoch} here")

    def _follower(self, broker_id: int, broker_epoch: int) -> Progress:
        follower = self._followers.get(broker_id)
        if follower is None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self._log.tp}: broker {broker_id} is none of its replicas {self.replicas}",
            )
        registered = self._brokers(broker_id)
        newest = max(follower.broker_epoch, UNKNOWN if registered is None else registered)
        if broker_epoch < newest:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self._log.tp}: broker {broker_id} of epoch {broker_epoch} has been registered anew since, "
                f"with epoch {newest}",
            )
        return follower

    def _divergence(self, offset: int, last_fetched_epoch: int) -> Divergence | None:
        log = self._log
        if last_fetched_epoch >= 0:
            return find_divergence(log, self.leader_epoch, last_fetched_epoch, offset)
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise out_of_range(
                log, offset, f"offset {offset} is outside {log.log_start_offset}…{log.log_end_offset}"
            )
        return None

    # In-sync replicas

    def tick(self, now_ms: int) -> None:
        """Propose to remove followers from the ISR that have not been caught up for too long."""
        in_sync = self._in_sync
        if in_sync.proposal is None:
            slow = {replica for replica in in_sync.isr if self._is_slow(replica, now_ms)}
            if slow:
                self._propose([replica for replica in in_sync.isr if replica not in slow])
        self.reconsider(now_ms)

    def reconsider(self, now_ms: int) -> None:
        """Check followers and the high watermark again, after brokers were registered or lost.

        A follower that was kept out may now join, if it has everything; others are checked at their next
        fetch. A follower that is gone or may not join is no longer waited for.
        """
        self._advance(now_ms)
        if len(self._in_sync.isr) == len(self.replicas):
            return
        for follower in self._followers.values():
            if (
                follower.log_end_offset == self.log_end_offset
                and follower.broker_id not in self._in_sync.maximal
            ):
                self._maybe_expand(follower, now_ms)

    @property
    def due_ms(self) -> int | None:
        """The time at which `tick` next has something to do; None if every follower has everything.

        An append, a fetch or an image may bring it forward.
        """
        lag_ms = self.settings.replica_lag_time_max_ms
        times = [
            follower.last_caught_up_ms + lag_ms + 1
            for follower in self._followers.values()
            if follower.log_end_offset != self.log_end_offset and follower.last_caught_up_ms != NEVER_MS
        ]
        return min(times, default=None)

    def _is_slow(self, replica: int, now_ms: int) -> bool:
        follower = self._followers.get(replica)
        return follower is not None and not self._is_caught_up(follower, now_ms)

    def _is_caught_up(self, follower: Progress, now_ms: int) -> bool:
        return follower.is_caught_up(self.log_end_offset, now_ms, self.settings.replica_lag_time_max_ms)

    def _maybe_expand(self, follower: Progress, now_ms: int) -> None:
        """Propose to add a follower to the ISR that has everything committed and has reached this leader
        epoch.

        The start of the epoch matters because records before it may be committed above the leader's high
        watermark. Below min.insync.replicas the high watermark does not rise, so reaching it says little: the
        follower may be far behind, and would soon be removed again (KAFKA-19996). Then it must be caught up
        as well.
        """
        in_sync = self._in_sync
        if (
            in_sync.proposal is None
            and follower.log_end_offset >= self.high_watermark
            and follower.log_end_offset >= self.epoch_start_offset
            and (not self.is_under_min_isr or self._is_caught_up(follower, now_ms))
            and self._is_eligible(follower)
        ):
            self._propose([*in_sync.isr, follower.broker_id])

    def _is_eligible(self, follower: Progress) -> bool:
        """Return True if the follower's broker is still registered under the epoch that it fetched with
        (KIP-903).
        """
        registered = self._brokers(follower.broker_id)
        return registered is not None and follower.broker_epoch == registered

    def _propose(self, isr: Sequence[int]) -> None:
        epochs = tuple((broker_id, self._broker_epoch(broker_id)) for broker_id in isr)
        self._in_sync.propose(Proposal(epochs, self.leader_epoch, self._in_sync.partition_epoch))

    def _broker_epoch(self, broker_id: int) -> int:
        """Return the epoch under which a broker last fetched, or the own one; UNKNOWN if there is none."""
        follower = self._followers.get(broker_id)
        if follower is not None:
            return follower.broker_epoch
        own = self._brokers(broker_id)
        return UNKNOWN if own is None else own

    # Proposals

    def take_proposal(self) -> Proposal | None:
        """Return the proposal to send to the controller now, or None. Then call `accepted`, `refused` or
        `unanswered`.
        """
        return self._in_sync.take()

    def accepted(
        self,
        proposal: Proposal,
        isr: tuple[int, ...],
        *,
        leader_epoch: int,
        partition_epoch: int,
        now_ms: int,
    ) -> None:
        """Handle the controller's acceptance of ``proposal``: ``isr`` is committed."""
        in_sync = self._in_sync
        if proposal is not in_sync.proposal or leader_epoch != self.leader_epoch:
            return
        self._commit(isr, partition_epoch, now_ms)

    def refused(self, proposal: Proposal, error_code: int, now_ms: int) -> None:
        """Handle an error of the controller.

        INELIGIBLE_REPLICA withdraws the proposal: a broker in it may not join. After an error of
        `AWAIT_IMAGE` the next image is waited for. After any other error the proposal is sent again.
        """
        in_sync = self._in_sync
        if proposal is not in_sync.proposal:
            return
        if error_code == ErrorCode.INELIGIBLE_REPLICA:
            in_sync.withdrawn()
            self._advance(now_ms)
        elif error_code in AWAIT_IMAGE:
            in_sync.outdated()
        else:
            in_sync.unanswered()

    def unanswered(self, proposal: Proposal) -> None:
        """Have ``proposal`` sent again after a while, since no response arrived: it may or may not be
        committed.
        """
        if proposal is self._in_sync.proposal:
            self._in_sync.unanswered()

    def image_changed(self, image: PartitionState, now_ms: int) -> None:
        """Apply an image of the same leader epoch, with other replicas or another ISR. An older image is
        ignored.
        """
        assert image.leader_epoch == self.leader_epoch, "a new leader epoch is a new Leader's"
        if image.partition_epoch <= self._in_sync.partition_epoch:
            if image.partition_epoch == self._in_sync.partition_epoch:
                self._in_sync.confirmed()
            return
        self.replicas = image.replicas
        previous = self._followers
        self._followers = {
            replica: previous.get(replica) or Progress(replica)
            for replica in image.replicas
            if replica != self._id
        }
        self._commit(image.isr, image.partition_epoch, now_ms)

    def _commit(self, isr: tuple[int, ...], partition_epoch: int, now_ms: int) -> None:
        for replica in isr:
            if replica not in self._in_sync.isr and (follower := self._followers.get(replica)) is not None:
                follower.caught_up(now_ms)
        self._in_sync.commit(isr, partition_epoch)
        self.reconsider(now_ms)

    # The high watermark

    def _advance(self, now_ms: int) -> None:
        """Raise the high watermark to the smallest log end of the replicas that it waits for."""
        if self.is_under_min_isr:
            return
        end = self._own_end
        for follower in self._followers.values():
            if follower.log_end_offset < end and self._is_waited_for(follower, now_ms):
                end = follower.log_end_offset
        if end > self.high_watermark:
            self.high_watermark = end

    def _is_waited_for(self, follower: Progress, now_ms: int) -> bool:
        return follower.broker_id in self._in_sync.maximal or (
            self._is_caught_up(follower, now_ms) and self._is_eligible(follower)
        )
