"""Random histories of offsets, plain and in transactions, against a model that only looks at the log.

The model knows no order of events, only positions. Plain records count, and so do those of transactions whose
marker commits them. The committed offset of a partition is its last record in the log that counts, unless a
tombstone follows. Offsets of transactions without a marker are pending.

After every step the running coordinator and one recovered from its log agree with the model on committed and
pending offsets. At the end of a history so does a coordinator recovered from any prefix of the log. Every
group id with a committed or pending offset is a group.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records.header import NO_PRODUCER_ID
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from logd.groups import (
    CoordinatorRecord,
    GroupSettings,
    GroupShard,
    LogEntry,
    Producing,
    Stored,
    TransactionEnd,
)
from logd.groups.records import OffsetRecord
from tests.support import depth

Where = tuple[str, str, int]
GROUPS, TOPICS, PARTITIONS = ("g", "h"), ("t", "u"), (0, 1)
PLACES = [(topic, index) for topic in TOPICS for index in PARTITIONS]
RETENTION_MS = 10_000

groups = st.sampled_from(GROUPS)
places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True)
producers = st.integers(1, 3)


class ModelLog:
    """A log in memory, whose positions are those in the list."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.fails = False

    def append(self, records: Sequence[CoordinatorRecord]) -> int:
        return self._append(records, NO_PRODUCER_ID)

    def append_in_transaction(self, records: Sequence[CoordinatorRecord], producing: Producing) -> int:
        return self._append(records, producing.producer_id)

    def _append(self, records: Sequence[CoordinatorRecord], producer_id: int) -> int:
        if self.fails:
            self.fails = False
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        first = len(self.entries)
        self.entries += [Stored(first + at, record, producer_id) for at, record in enumerate(records)]
        return first


def model(entries: Sequence[LogEntry]) -> tuple[dict[Where, int], set[Where]]:
    """Return committed and pending offsets, from the log alone."""
    committed: dict[Where, int] = {}
    pending: set[Where] = set()
    for at, entry in enumerate(entries):
        if isinstance(entry, TransactionEnd) or not isinstance(entry.record, OffsetRecord):
            continue
        where, value = place_of(entry.record), entry.record.value
        if value is None:
            committed.pop(where, None)
            pending.discard(where)
            continue
        ends = [
            later.committed
            for later in entries[at:]
            if isinstance(later, TransactionEnd) and later.producer_id == entry.producer_id
        ]
        if entry.producer_id == NO_PRODUCER_ID or (ends and ends[0]):
            committed[where] = value.offset
        elif not ends:
            pending.add(where)
    return committed, pending


def place_of(record: OffsetRecord) -> Where:
    return record.key.group, record.key.topic, record.key.partition


def fetched(shard: GroupShard, *, stable: bool) -> dict[Where, tuple[int, int]]:
    """Return offset and error code of every partition in `PLACES`."""
    results = {}
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(PARTITIONS)) for topic in TOPICS]
    for group in GROUPS:
        request = OffsetFetchRequestGroup(group_id=group, topics=topics)
        for topic in shard.fetch(request, require_stable=stable).topics:
            for partition in topic.partitions:
                where = (group, topic.name, partition.partition_index)
                results[where] = (partition.committed_offset, partition.error_code)
    return results


class OffsetHistories(RuleBasedStateMachine):
    """Two groups without members in one coordinator partition, and three producers."""

    @initialize()
    def begin(self) -> None:
        self.log = ModelLog()
        self.now_ms = 1_000_000
        self.next_offset = 0
        self.shard = self.recovered(())

    def recovered(self, entries: Sequence[LogEntry]) -> GroupShard:
        shard = GroupShard(self.log, GroupSettings(offsets_retention_ms=RETENTION_MS))
        for entry in entries:
            shard.load(entry)
        shard.loaded(self.now_ms)
        return shard

    def offset(self) -> int:
        self.next_offset += 1
        return self.next_offset

    @rule(group=groups, where=places)
    def commit(self, group: str, where: list[tuple[str, int]]) -> None:
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=self.offset())
                ],
            )
            for topic, index in where
        ]
        self.shard.commit(OffsetCommitRequest(group_id=group, topics=topics), 9, self.now_ms)

    @rule(producer=producers, group=groups, where=places)
    def commit_in_transaction(self, producer: int, group: str, where: list[tuple[str, int]]) -> None:
        topics = [
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=self.offset())
                ],
            )
            for topic, index in where
        ]
        request = TxnOffsetCommitRequest(group_id=group, producer_id=producer, topics=topics)
        fails = self.log.fails
        response = self.shard.commit_in_transaction(request, 5, self.now_ms)
        codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
        assert codes == {ErrorCode.NOT_COORDINATOR if fails else 0}

    @rule(producer=producers, committed=st.booleans())
    def end(self, producer: int, committed: bool) -> None:
        self.log.entries.append(TransactionEnd(producer, committed))
        self.shard.end_transaction(producer, committed)

    @rule(group=groups, where=places)
    def delete_offsets(self, group: str, where: list[tuple[str, int]]) -> None:
        topics = [
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in where
        ]
        response = self.shard.delete_offsets(OffsetDeleteRequest(group_id=group, topics=topics), self.now_ms)
        if not response.error_code:
            committed, pending = model(self.log.entries)
            assert not any((group, *place) in committed or (group, *place) in pending for place in where)

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        error = self.shard.delete(group, self.now_ms).error_code
        if error == ErrorCode.NONE:
            assert group not in self.shard.store.groups
            assert not any(where[0] == group for offsets in model(self.log.entries) for where in offsets)

    @rule(topic=st.sampled_from(TOPICS))
    def delete_topic(self, topic: str) -> None:
        if self.shard.topics_deleted([topic], self.now_ms) is ErrorCode.NONE:
            assert not any(where[1] == topic for offsets in model(self.log.entries) for where in offsets)

    @rule(ms=st.sampled_from([RETENTION_MS // 2, RETENTION_MS]))
    def time_passes_and_offsets_expire(self, ms: int) -> None:
        self.now_ms += ms
        before, pending = model(self.log.entries)
        self.shard.expire(self.now_ms)
        committed, still_pending = model(self.log.entries)
        assert still_pending == pending
        assert all(where in committed for where in before.keys() & pending)

    @rule()
    def the_next_append_fails(self) -> None:
        self.log.fails = True

    @rule()
    def the_broker_restarts(self) -> None:
        self.log.fails = False
        self.shard = self.recovered(self.log.entries)

    @invariant()
    def what_is_told_is_what_the_log_says(self) -> None:
        if hasattr(self, "shard"):
            self.check(self.shard, self.log.entries)
            self.check(self.recovered(self.log.entries), self.log.entries)

    def teardown(self) -> None:
        for end in range(len(self.log.entries) if hasattr(self, "log") else 0):
            self.check(self.recovered(self.log.entries[:end]), self.log.entries[:end])

    def check(self, shard: GroupShard, entries: Sequence[LogEntry]) -> None:
        committed, pending = model(entries)
        plain, stable = fetched(shard, stable=False), fetched(shard, stable=True)
        assert {where: offset for where, (offset, _) in plain.items() if offset != -1} == committed
        assert {where for where, (_, error) in stable.items() if error} == pending
        assert all(plain[where] == result for where, result in stable.items() if where not in pending)
        assert {where[0] for where in (*committed, *pending)} <= shard.store.groups.keys()


TestOffsetHistories = OffsetHistories.TestCase
TestOffsetHistories.settings = settings(max_examples=depth.times(200), stateful_step_count=30)
