"""Random histories of producers, lost answers, timeouts and restarts, against a model.

What has to hold whatever happens: a transaction is committed or aborted, never both, and never a part of it;
it is committed only if its producer said so; and a producer that was fenced gets nothing done any more.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.transactions import (
    ProducerIdentity,
    TransactionRecord,
    TransactionSettings,
    TransactionShard,
    TransactionState,
)
from logd.transactions.states import PREPARED
from tests.logd.transactions.listlog import ListLog
from tests.support import depth

T = TypeVar("T")
ID = "x"
TIMEOUT_MS = 1_000
PARTITIONS = [TopicPartition("t", index) for index in range(3)]
REFUSALS = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_TXN_STATE,
}

FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING}


@dataclasses.dataclass
class Producer:
    """A producer. `identity` is the last one that it got; `pending` is the outcome of an EndTxn that awaits
    its response.
    """

    version: int
    identity: ProducerIdentity
    fenced: bool = False
    aborted: bool = False
    """The coordinator has aborted its transaction: it may still hear of that and go on (version 2)."""
    added: set[TopicPartition] = dataclasses.field(default_factory=set)
    pending: bool | None = None


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.log = ListLog()
        self.now_ms = 0
        self.ids = itertools.count(1000)
        self.shard = self.loaded()
        self.producers: list[Producer] = []
        self.decided: tuple[bool, set[TopicPartition]] | None = None
        self.marked: dict[TopicPartition, bool] = {}

    def loaded(self) -> TransactionShard:
        shard = TransactionShard(0, self.log, TransactionSettings(), lambda: next(self.ids))
        for offset, record in self.log.read():
            shard.load(record, offset)
        return shard

    @property
    def state(self) -> TransactionState:
        return self.shard.describe(ID).state

    @property
    def current(self) -> Producer | None:
        return next((one for one in self.producers if not one.fenced), None)

    def decide(self, commit: bool, partitions: set[TopicPartition]) -> None:
        assert self.decided is None, "decided twice"
        self.decided = commit, set(partitions)
        self.marked = {}

    def may_be_refused(self, producer: Producer, code: ErrorCode) -> None:
        """Check that no producer is fenced that has the identity which the coordinator gave out last."""
        assert code in REFUSALS
        is_up_to_date = producer.version < 2 or producer.pending is None
        if producer is self.current and is_up_to_date:
            assert code not in FENCED

    def fence(self) -> None:
        """Fence the current producer, and abort its transaction if it has one."""
        producer = self.current
        if producer is not None:
            producer.fenced = True
            if producer.added:
                self.decide(False, producer.added)
                producer.aborted = producer.version >= 2

    @rule(version=st.sampled_from((0, 2)))
    def somebody_comes(self, version: int) -> None:
        open_before = self.current is not None and bool(self.current.added)
        identity, code = tried(lambda: self.shard.init_producer(ID, TIMEOUT_MS, None, self.now_ms))
        if identity is None:
            assert code is ErrorCode.CONCURRENT_TRANSACTIONS
            if self.decided is None:
                assert open_before
                self.fence()
            return
        assert not open_before and self.decided is None
        self.fence()
        assert identity not in [producer.identity for producer in self.producers]
        self.producers.append(Producer(version, identity))

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), some=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def partitions_are_added(self, data: st.DataObject, some: set[TopicPartition]) -> None:
        producer = data.draw(st.sampled_from(self.producers))
        _, code = tried(
            lambda: self.shard.add_partitions(
                ID, producer.identity, some, client_version=producer.version, now_ms=self.now_ms
            )
        )
        if code is not ErrorCode.NONE:
            self.may_be_refused(producer, code)
            return
        assert not producer.fenced and self.decided is None
        producer.added |= some
        producer.pending = None

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), commit=st.booleans(), lost=st.booleans())
    def a_transaction_ends(self, data: st.DataObject, commit: bool, lost: bool) -> None:
        producer = data.draw(st.sampled_from(self.producers))
        asked_again = producer.pending
        was_decided = self.decided
        after, code = tried(
            lambda: self.shard.end(
                ID, producer.identity, commit=commit, client_version=producer.version, now_ms=self.now_ms
            )
        )
        if after is None:
            self.may_be_refused(producer, code)
            return
        if producer.aborted:
            assert not commit and self.current is None
            if not lost:
                producer.fenced = producer.aborted = False
                producer.added = set()
                producer.identity = after
            return
        assert not producer.fenced and was_decided is None
        if self.state in PREPARED:
            assert not commit or producer.added, "nothing to commit"
            self.decide(commit, producer.added)
            producer.added = set()
            producer.pending = commit
        else:
            assert asked_again is commit, "answered as if it had been done"
        if not lost and producer.version >= 2:
            assert after != producer.identity
            producer.identity = after
            producer.pending = None

    @precondition(lambda self: self.decided)
    @rule(data=st.data())
    def a_marker_is_written(self, data: st.DataObject) -> None:
        owed = self.shard.owed(ID)
        assert owed is not None and self.decided is not None
        transaction, left = owed
        commit, partitions = self.decided
        assert (transaction.state is TransactionState.PREPARE_COMMIT) is commit
        assert set(left) <= partitions
        if left:
            where = data.draw(st.sampled_from(sorted(left)))
            assert self.marked.setdefault(where, commit) is commit
            self.shard.marker_written(ID, where)
        self.shard.complete(ID, self.now_ms)
        if self.shard.owed(ID) is None:
            assert set(self.marked) == partitions
            self.decided = None

    @rule(by_ms=st.integers(1, TIMEOUT_MS * 2))
    def time_passes(self, by_ms: int) -> None:
        self.now_ms += by_ms
        for transactional_id in self.shard.timed_out(self.now_ms):
            assert self.shard.abort_timed_out(transactional_id, self.now_ms)
            self.fence()

    @precondition(lambda self: self.producers)
    @rule()
    def a_restart(self) -> None:
        before = self.shard.describe(ID)
        self.shard = self.loaded()
        after = self.shard.describe(ID)
        assert after._replace(partitions=()) == before._replace(partitions=())
        assert set(after.partitions) >= set(before.partitions)

    @precondition(lambda self: self.producers and self.decided is None)
    @rule(epoch=st.integers(32_760, 32_766))
    def many_epochs_go_by(self, epoch: int) -> None:
        """Raise the epoch as if as many producers had come and gone. The current one is fenced."""
        described = self.shard.describe(ID)
        if described.state not in PREPARED and described.producer_epoch < epoch and self.current:
            if self.current.added:
                return
            self.fence()
            last = list(self.log.read())[-1][1].transaction
            assert last is not None
            self.log.append([TransactionRecord(ID, dataclasses.replace(last, producer_epoch=epoch))])
            self.shard = self.loaded()

    @invariant()
    def the_state_is_what_the_model_says(self) -> None:
        if not self.producers:
            return
        assert (self.state in PREPARED) is (self.decided is not None)
        producer = self.current
        if producer is not None and producer.added:
            assert self.state is TransactionState.ONGOING
            assert set(self.shard.describe(ID).partitions) == producer.added


def tried(call: Callable[[], T]) -> tuple[T | None, ErrorCode]:
    """Return what a call returns and NONE, or None and the error code that it is refused with."""
    try:
        return call(), ErrorCode.NONE
    except KafkaError as error:
        return None, error.code


Histories.TestCase.settings = settings(max_examples=depth.times(150), stateful_step_count=40, database=None)
test_histories = Histories.TestCase
