"""One partition led here: how far it is committed, who is in sync, and what to propose to the controller.

A follower that has all there is may be silent of a partition for long: its fetch session says only what
changes (KIP-227). Whoever could not join when it fetched last is looked at again when that may have changed.

The high watermark is the smallest log end over the maximal ISR (`isr`): everything before it is on every
broker that could be elected. It only rises. It is looked at again when a follower that may have held it back
moves, never per record; with one replica it is the log end.

Below min.insync.replicas it rests (KIP-966): what is on fewer brokers than promised is not committed. An ISR
that is alone with its leader waits for a follower that is about to join (caught up within
replica.lag.time.max.ms), else a busy log would run away from it for ever.

Compaction removes deletions and transaction markers in time. A follower that has not copied one by then would
keep the value it deletes, or wait for ever for the transaction's end (`begins_anew`). So it drops its log and
copies what there is from the start; meanwhile nothing is removed above where it is (`removable_to`).

Left to others: sending proposals and backing off, waking who waits, the log, and ending this when the image
has another leader epoch (a new `Leader` then, also where the leader is the same). Whoever acknowledges has to
ask the broker's lease as well: this knows no session.
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
"""The epoch under which a broker is registered; None if it is not, or shuts down: then it may not join."""

AWAIT_IMAGE = frozenset(
    (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)
"""The controller has a newer image, and that comes by itself. After any other error: send it again."""


class LeaderLog(EpochTable, Protocol):
    """The own log: read here, changed by its owner."""

    @property
    def removal_offset(self) -> int:
        """1 + the highest offset of a deletion or transaction marker that was compacted away; 0: none was."""


class PartitionState(Protocol):
    """What the image of the cluster says of a partition."""

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
    """May be changed while running; call `Leader.tick` then."""

    replica_lag_time_max_ms: int = 30_000
    """``replica.lag.time.max.ms``: a follower that was not caught up for so long leaves the ISR."""
    min_insync_replicas: int = 1
    """``min.insync.replicas`` of the topic; see `Leader.required_in_sync`."""


class Leader:
    """A partition led here, in one leader epoch.

    Whatever takes a time may raise ``high_watermark`` and have something to propose: look at it afterwards,
    and at `take_proposal`.
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
        """Become leader. The log has begun the epoch of the image at its end already, and ``high_watermark``
        is what was known here as a follower, or read from the checkpoint.
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
        """Every broker in an ISR that holds or may hold: those the high watermark waits for."""
        return self._in_sync.maximal

    @property
    def partition_epoch(self) -> int:
        """Of the committed ISR."""
        return self._in_sync.partition_epoch

    @property
    def is_alone(self) -> bool:
        """Whether there is no other replica: then the high watermark is what counts of the own log."""
        return not self._followers

    @property
    def required_in_sync(self) -> int:
        """How many in-sync replicas acks=all needs: the smaller of min.insync.replicas and the number of
        replicas (KAFKA-15583).
        """
        return min(self.settings.min_insync_replicas, len(self.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """Return True if acks=all is refused, and the high watermark must not rise."""
        return len(self._in_sync.isr) < self.required_in_sync

    def progress(self, broker_id: int) -> Progress | None:
        """How far a follower is; None if it is no replica. To be read only."""
        return self._followers.get(broker_id)

    @property
    def followers(self) -> Collection[Progress]:
        """The other replicas. To be read only."""
        return self._followers.values()

    def readable_from(self, offset: int) -> Sequence[Progress]:
        """The in-sync followers that hold ``offset``, for the choice of a consumer's preferred read replica
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
        """Before an acks=all append: raise KafkaError(NOT_ENOUGH_REPLICAS) below min.insync.replicas."""
        if self.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self._log.tp}: min.insync.replicas is {self.settings.min_insync_replicas}, of "
                f"{len(self.replicas)} replicas {len(self._in_sync.isr)} are in sync: "
                f"{', '.join(map(str, self._in_sync.isr))}",
            )

    def appended(self, log_end_offset: int, now_ms: int, *, own_end: int | None = None) -> None:
        """The own log ends there now. Only what is before ``own_end`` counts, where an append is owed a flush
        first (see `flushed`); by default all of it does.
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
        """What of the own log is before ``own_end`` counts."""
        self._own_end = own_end
        self._advance(now_ms)

    def acknowledgement(self, end_offset: int) -> ErrorCode | None:
        """What an acks=all append that ends at ``end_offset`` is answered; None while it has to wait."""
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
        """A follower fetches at ``offset``: so it holds what is before it, unless the histories diverge.

        None: give it what is there. A divergence with the epoch `NOTHING_STAYS`: it has to begin anew.
        ``last_fetched_epoch`` is -1 for a follower that holds nothing. Raises
        KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE, and NOT_LEADER_OR_FOLLOWER
        where it is no replica or its broker has been registered anew since (KIP-903). Nothing of a fetch that
        raises or diverges counts.
        """
        self._check_epoch(current_leader_epoch)
        follower = self._follower(broker_id, broker_epoch)
        divergence = self._divergence(offset, last_fetched_epoch)
        if divergence is not None:
            return divergence
        if self.begins_anew(broker_id, offset):
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

    def begins_anew(self, broker_id: int, offset: int) -> bool:
        """Return True if a follower at `offset` must not go on there: a deletion or marker that it has not
        copied is gone from the log.

        Whoever copies the log from its start needs none that was gone by then. An in-sync replica has all
        that is committed, and nothing else is compacted.
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
        replica.lag.time.max.ms: one that is away is not waited for, and may have to begin anew. Nor is it
        known where a follower is that has not fetched in this leader epoch: it has so long to do so.
        ``last_fetch_ms`` says when a broker has fetched anything from here, `NEVER_MS` if it has not: its
        session says of a partition only what changes. Call `removed` in the same step as removing.
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
        """Deletions or markers before `offset` are removed from the log."""
        for follower in self._followers.values():
            if UNKNOWN < follower.removal_offset < offset:
                follower.removal_offset = offset

    def succeed(self, before: Leader) -> None:
        """Go on from the leader of the leader epoch just before, on this broker: nobody has written to the
        followers' logs in between, so that those that are being copied go on.
        """
        assert before.leader_epoch + 1 == self.leader_epoch, "another broker may have led meanwhile"
        for follower in before.followers:
            known = self._followers.get(follower.broker_id)
            if known is not None:
                known.removal_offset = follower.removal_offset

    def _check_epoch(self, known: int) -> None:
        if known == self.leader_epoch:
            return
        code = ErrorCode.FENCED_LEADER_EPOCH if known < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"{self._log.tp}: leader epoch {known}, it is {self.leader_epoch} here")

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
        """Time has passed: whoever was not caught up for too long is to leave the ISR."""
        in_sync = self._in_sync
        if in_sync.proposal is None:
            slow = {replica for replica in in_sync.isr if self._is_slow(replica, now_ms)}
            if slow:
                self._propose([replica for replica in in_sync.isr if replica not in slow])
        self.reconsider(now_ms)

    def reconsider(self, now_ms: int) -> None:
        """Something was heard of brokers: what a follower was kept out for may be over, so take in who has
        all there is (who has not fetches again, and is looked at then); and one that is gone, or may not
        join, is not waited for.
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
        """When `tick` next has something to do, as things are; None where every follower has all there is.
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
        """Propose to take in a follower that has what is committed, and is in this leader epoch: before the
        epoch's start the leader may hold more than its high watermark that is committed.

        A high watermark that rests says little: whoever has come to it may be far behind, and would be taken
        out again for that (KAFKA-19996). Then it has to be caught up as well.
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
        """Whether it is registered as the one that fetched, and has lost nothing since (KIP-903)."""
        registered = self._brokers(follower.broker_id)
        return registered is not None and follower.broker_epoch == registered

    def _propose(self, isr: Sequence[int]) -> None:
        epochs = tuple((broker_id, self._broker_epoch(broker_id)) for broker_id in isr)
        self._in_sync.propose(Proposal(epochs, self.leader_epoch, self._in_sync.partition_epoch))

    def _broker_epoch(self, broker_id: int) -> int:
        """As which it was last heard of."""
        follower = self._followers.get(broker_id)
        if follower is not None:
            return follower.broker_epoch
        own = self._brokers(broker_id)
        return UNKNOWN if own is None else own

    # Proposals

    def take_proposal(self) -> Proposal | None:
        """What is to be sent to the controller now. Then call one of `accepted`, `refused`, `unanswered`."""
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
        """The controller answered with what holds now."""
        in_sync = self._in_sync
        if proposal is not in_sync.proposal or leader_epoch != self.leader_epoch:
            return
        self._commit(isr, partition_epoch, now_ms)

    def refused(self, proposal: Proposal, error_code: int, now_ms: int) -> None:
        """The controller answered with an error: because of a broker that is to join, of what the proposal
        was decided on (see `AWAIT_IMAGE`), or of something that passes.
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
        """No answer came: it may hold or not, and is to be sent again after a while."""
        if proposal is self._in_sync.proposal:
            self._in_sync.unanswered()

    def image_changed(self, image: PartitionState, now_ms: int) -> None:
        """Take other replicas or another ISR of the same leader epoch; an older image is passed over."""
        assert image.leader_epoch == self.leader_epoch, "a new leader epoch is a new Leader's"
        if image.partition_epoch <= self._in_sync.partition_epoch:
            if image.partition_epoch == self._in_sync.partition_epoch:
                self._in_sync.confirmed()
            return
        self.replicas = image.replicas
        known = self._followers
        self._followers = {
            replica: known.get(replica) or Progress(replica)
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
        """See how far all that count have come."""
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
