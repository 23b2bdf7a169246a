"""The shell around the transaction coordinator: finds a transactional id's partition, loads it, keeps house.

`logd.transactions` decides; `partition` runs one partition of `__transaction_state`; here they are kept
together, and here the partitions of all topics ask whether a producer may write (`admit`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.topic_partition import TopicPartition
from logd.broker.coordinators.coordinator import Coordinator, partition_for
from logd.broker.topics.topic import TRANSACTION_STATE
from logd.broker.transactions.markers import Markers
from logd.transactions.identity import ProducerIdentity

if TYPE_CHECKING:
    from logd.broker.coordinators.peers import Cluster
    from logd.broker.coordinators.producer_ids import ProducerIds
    from logd.broker.groups.groups import Groups
    from logd.broker.partition.partition import Partition
    from logd.broker.topics.catalog import TopicCatalog
    from logd.broker.topics.topic import Topic
    from logd.broker.transactions.partition import TxnPartition
    from logd.broker.transactions.remote_admission import RemoteAdmission
    from logd.config.broker import BrokerConfig
    from logd.storage import Log
    from logd.transactions import TransactionDescription

IMPLICIT_VERSION = 2
"""The transaction version of a producer whose writes bring their partitions into the transaction."""

log = logging.getLogger("logd.broker")


class Transactions(Coordinator["TxnPartition"]):
    """All transactions this broker coordinates. `admission.TransactionGuard` is `admit`.

    KafkaError everywhere: COORDINATOR_LOAD_IN_PROGRESS while a partition is being recovered, NOT_COORDINATOR
    or COORDINATOR_NOT_AVAILABLE where there is none.
    """

    topic = TRANSACTION_STATE
    coordinates = "transactions"

    def __init__(
        self,
        config: BrokerConfig,
        catalog: TopicCatalog,
        groups: Groups,
        producer_ids: ProducerIds,
        *,
        now_ms: Callable[[], int],
        create_topic: Callable[[str], Awaitable[Topic]],
        read_in: Callable[[Log], Awaitable[None]],
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__(catalog, create_topic, read_in)
        self._config = config
        self._producer_ids = producer_ids
        self._now_ms = now_ms
        self._remote: RemoteAdmission | None = None
        if cluster is not None:
            from logd.broker.transactions.remote_admission import RemoteAdmission

            self._remote = RemoteAdmission(cluster)
        marked = None if self._remote is None else self._remote.ended
        self.markers = Markers(catalog, groups, now_ms, cluster, marked)

    def configure(self, config: BrokerConfig) -> None:
        """Take settings that were changed while running."""
        self._config = config

    def start(self) -> None:
        """Recover in the background, finish what was decided, and begin looking for timeouts."""
        config, every = self._config, self._rounds.every
        self._rounds.spawn(self._recover())
        every(config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self._abort_timed_out)
        every(config.transaction_remove_expired_transaction_cleanup_interval_ms, self._expire)

    async def stop(self) -> None:
        """End; what is not finished the next start finishes."""
        await self._rounds.stop()
        await asyncio.gather(*self._close(tuple(self._partitions)), return_exceptions=True)
        await self.markers.stop()
        if self._remote is not None:
            await self._remote.stop()

    def statistics(self) -> dict[str, int]:
        """Return the counts of transactional ids and of finishing transactions, at most one per id.

        A finishing transaction is decided, and markers are still to be written. The other counts are those of
        `MarkerQueues` and `RemoteAdmission`.
        """
        from logd.broker.transactions.remote_admission import RemoteAdmission

        per_partition = [partition.statistics() for partition in self._partitions.values()]
        names = ("transactional_ids", "finishing")
        own = {name: sum(each[name] for each in per_partition) for name in names}
        remote = RemoteAdmission.NONE if self._remote is None else self._remote.statistics()
        return own | self.markers.statistics() | remote

    # Finding

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that an id belongs to."""
        topic = self._catalog.topics.get(TRANSACTION_STATE)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"there is no {TRANSACTION_STATE} yet")
        return partition_for(transactional_id, len(topic.partitions))

    def _partition(self, transactional_id: str) -> TxnPartition:
        """Return the coordinator partition of an id, ready to use. Raises KafkaError as `_loaded`."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        return self._loaded(self.partition_of(transactional_id))

    # Producers

    async def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        """Fence the id's previous user (InitProducerId); `expected` is the producer's identity so far."""
        await self._producer_ids.reserve()
        partition = self._partition(transactional_id)
        identity = partition.init_producer(transactional_id, timeout_ms, expected)
        await partition.flushed()
        return identity

    async def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Collection[TopicPartition],
        *,
        client_version: int = 0,
    ) -> None:
        """Put partitions into the producer's transaction, which begins if there was none."""
        partition = self._partition(transactional_id)
        partition.add_partitions(transactional_id, identity, partitions, client_version=client_version)
        await partition.flushed()

    async def verify_partitions(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return NONE for each partition in the producer's transaction, else TRANSACTION_ABORTABLE."""
        partition = self._partition(transactional_id)
        codes = partition.verify_partitions(transactional_id, identity, partitions)
        added = partition.added(transactional_id)
        if added is not None:
            await added
        return codes

    def end_at_once(
        self, transactional_id: str, identity: ProducerIdentity, *, commit: bool, client_version: int = 0
    ) -> ProducerIdentity | Awaitable[ProducerIdentity] | None:
        """End the transaction as `end`, and return what has to be awaited before the response.

        Return None, with nothing done, if a producer id has to be awaited first: call `end` then.
        """
        if not self._producer_ids.has_reserved:
            return None
        partition = self._partition(transactional_id)
        after = partition.end(transactional_id, identity, commit=commit, client_version=client_version)
        return after if partition.flushing() is None else _once_flushed(partition, after)

    async def end(
        self, transactional_id: str, identity: ProducerIdentity, *, commit: bool, client_version: int = 0
    ) -> ProducerIdentity:
        """Answer EndTxn: return the next transaction's identity once the decision is in the log."""
        await self._producer_ids.reserve()
        partition = self._partition(transactional_id)
        after = partition.end(transactional_id, identity, commit=commit, client_version=client_version)
        return await _once_flushed(partition, after)

    def admit(
        self,
        transactional_id: str | None,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        *,
        implicit: bool,
    ) -> Awaitable[None] | None:
        """Admit a producer's transaction to a partition: `admission.TransactionGuard` (KIP-890).

        `implicit`: the partition is put into the transaction here (transaction version 2); otherwise it has
        to be in it. If it returns an awaitable, await that and call this again before writing: else a power
        loss could take the transaction and leave its records, which would hold readers back for ever.

        Where another broker coordinates it raises NotYetAdmitted; see `RemoteAdmission`.

        KafkaErrors as a producer understands them that knows TRANSACTION_ABORTABLE; the coordinator's own
        ones (loading, CONCURRENT_TRANSACTIONS) the caller may have to tell in another way.
        """
        if not transactional_id:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                f"a transactional batch for {topic}-{partition} without a transactional id",
            )
        if not (implicit or self._config.transaction_partition_verification_enable):
            index = self.partition_of(transactional_id)
            return self._partitions[index].added(transactional_id) if index in self._partitions else None
        identity = ProducerIdentity(producer_id, producer_epoch)
        where = TopicPartition(topic, partition)
        if self._remote is not None:
            index = self.partition_of(transactional_id)
            if not self.leads(index):
                home = TopicPartition(TRANSACTION_STATE, index)
                self._remote.admit(home, transactional_id, identity, where, implicit=implicit)
                return None
        try:
            coordinator = self._partition(transactional_id)
            if implicit:
                coordinator.add_partitions(
                    transactional_id, identity, (where,), client_version=IMPLICIT_VERSION
                )
            else:
                code = coordinator.verify_partitions(transactional_id, identity, (where,))[where]
                if code is not ErrorCode.NONE:
                    raise KafkaError(code, f"{where} is not in a transaction of {transactional_id}")
        except KafkaError as error:
            if error.code is ErrorCode.PRODUCER_FENCED:
                raise error_for(ErrorCode.INVALID_PRODUCER_EPOCH, error.message) from None
            raise
        return coordinator.added(transactional_id)

    # Telling

    def describe(self, transactional_id: str) -> TransactionDescription:
        """Describe one transactional id.

        Raises KafkaError(TRANSACTIONAL_ID_NOT_FOUND), or KafkaError(INVALID_REQUEST) for an empty id.
        """
        return self._partition(transactional_id).describe(transactional_id)

    async def describe_committed(self, transactional_id: str) -> TransactionDescription:
        """Describe a transaction as `describe` does, once its state cannot be lost any more."""
        partition = self._partition(transactional_id)
        described = partition.describe(transactional_id)
        await partition.flushed()
        return described

    async def listed(self) -> list[TransactionDescription]:
        """Return every transactional id of the partitions led here. KafkaError as `_read_all`."""
        return await self._read_all(lambda partition: partition.listed())

    # Housekeeping

    def partition_moved(self, where: TopicPartition) -> None:
        """Drop admissions to a partition by other coordinators: they have to be asked for again.

        Call it when the partition's leader changes to or from this broker.
        """
        if self._remote is not None:
            self._remote.moved(where)

    def leaders_changed(self) -> None:
        """Send requests that wait for brokers which may never answer to the brokers that lead now.

        Call it once when changes of leaders have been applied.
        """
        self.markers.leaders_changed()
        if self._remote is not None:
            self._remote.leaders_changed()

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Close the coordinator's partitions if its topic was deleted; call it when topics have been deleted.

        Markers owed to deleted topics are given up at their turn.
        """
        if TRANSACTION_STATE in names:
            self._leadership.forget()
            self._close(tuple(self._partitions))

    def went_offline(self, partitions: Iterable[Partition]) -> None:
        """Close these partitions, whose log directory failed.

        The transactional ids in them have no coordinator until the broker is restarted.
        """
        self._close([partition.index for partition in partitions if partition.topic == TRANSACTION_STATE])

    async def _abort_timed_out(self) -> None:
        for partition in self._at_work():
            for transactional_id in partition.timed_out():
                await self._producer_ids.reserve()
                if partition.loaded:
                    with self._reloading(partition):
                        partition.abort_timed_out(transactional_id)
                await asyncio.sleep(0)

    async def _expire(self) -> None:
        from logd.transactions.shard import EXPIRED_PER_BATCH

        for partition in self._at_work():
            expired = partition.expired()
            for start in range(0, len(expired), EXPIRED_PER_BATCH):
                if partition.loaded:
                    with self._reloading(partition):
                        partition.forget(expired[start : start + EXPIRED_PER_BATCH])
                await asyncio.sleep(0)

    def _at_work(self) -> list[TxnPartition]:
        return [partition for partition in self._partitions.values() if partition.loaded]

    # Loading

    async def _recover(self) -> None:
        await self._load_all()
        topic = self._catalog.topics.get(TRANSACTION_STATE)
        for index in range(len(topic.partitions) if topic is not None else 0):
            if self.leads(index) and (index not in self._partitions or not self._partitions[index].loaded):
                self._producer_ids.unread(f"{TRANSACTION_STATE}-{index}")
        self._producer_ids.all_met()

    def _new_partition(self, index: int) -> TxnPartition:
        partition = self._catalog.partitions.get(TopicPartition(TRANSACTION_STATE, index))
        if partition is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{TRANSACTION_STATE}-{index} is offline")
        from logd.broker.transactions.log import TxnLog  # a broker is ready before there is a transaction
        from logd.broker.transactions.partition import TxnPartition
        from logd.transactions import TransactionSettings

        settings = TransactionSettings(
            transaction_max_timeout_ms=self._config.transaction_max_timeout_ms,
            transactional_id_expiration_ms=self._config.transactional_id_expiration_ms,
        )
        return TxnPartition(
            index,
            TxnLog(partition, self._now_ms, is_complete=self._leadership.is_complete(index)),
            settings,
            self.markers,
            new_producer_id=self._producer_ids.take_reserved,
            met_producer_id=self._producer_ids.met,
            deposed=self._deposed,
            now_ms=self._now_ms,
        )

    def _close(self, indexes: Iterable[int]) -> list[asyncio.Task[None]]:
        """Stop coordinating these partitions; the tasks that end with them."""
        closed = [self._partitions.pop(index) for index in indexes if index in self._partitions]
        for partition in closed:
            self._elected.pop(partition, None)
        return [task for partition in closed for task in partition.close()]


async def _once_flushed(partition: TxnPartition, identity: ProducerIdentity) -> ProducerIdentity:
    await partition.flushed()
    return identity
