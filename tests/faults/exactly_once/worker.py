"""A process that consumes, transforms and produces, each handful of records and its offsets in a transaction.

    python -m tests.faults.exactly_once.worker BOOTSTRAP NAME SEED

NAME is its transactional id; the group is everybody's. It tells each step on its output, a line each, and
may be killed or stopped at any of them. SIGTERM: it ends the transaction it is at and leaves, with status 0.
Where the transactional id is another process's: status FENCED. Whatever else aborting does not mend ends it
with a traceback.

    step          what has just been done
    started       the transactional id is this process's
    joined        partitions were assigned
    sent          the records of a transaction are on their way
    offsets       its offsets are in it, where they are sent before the commit
    committed N   a transaction of N records is committed
    aborted       one was aborted, as now and then is meant to be
    refused       one was aborted because the member's generation was over (KIP-447)
    failed        one was aborted for another reason, which stands on the error output
    fenced        another process has the transactional id
    forgotten     the same, under another producer id (logd gives a new one after an unclean stop)
"""

from __future__ import annotations

import asyncio
import faulthandler
import random
import signal
import sys
from collections.abc import Sequence

from kafka_client import Client, Consumer, GroupMetadata, TopicPartition, TransactionalProducer
from kafka_client.cluster.cluster import is_retriable
from kafka_client.errors import (
    AbortableTransactionError,
    ErrorCode,
    FatalTransactionError,
    MillstreamError,
    ProducerFenced,
    RebalanceNeeded,
    TransactionRebalanced,
)
from kafka_client.fetcher.fetched import Fetched
from kafka_client.records import NewRecord
from tests.faults.exactly_once.names import (
    FENCED,
    GROUP,
    INPUT,
    OUTPUT,
    OUTPUT_PARTITIONS,
    PATIENCE_MS,
    SESSION_MS,
    TRANSACTION_MS,
    changed,
)

RECORDS_MAX = 200
ABORTED_OF = 20
"""A transaction in this number is aborted after all of it was sent."""
WORK_SECONDS = 0.03
"""The longest that a transaction is worked at, so that it is open most of the time."""
RETRY_SECONDS = 0.02


def tell(step: str) -> None:
    print(step, flush=True)


class Worker:
    """A worker: `run` it until SIGTERM. It gives partitions up only between transactions."""

    def __init__(self, client: Client, name: str, seed: int) -> None:
        self._random = random.Random(f"{name} {seed}")
        self._consumer = Consumer(
            client,
            GROUP,
            assignors=["cooperative-sticky"] if seed % 2 else ["range"],
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 6,
        )
        self._producer = TransactionalProducer(
            client,
            name,
            linger_ms=1,
            transaction_timeout_ms=TRANSACTION_MS,
            delivery_timeout_ms=PATIENCE_MS,
        )
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing: asyncio.Future[None] | None = None
        """A commit that goes on while the next transaction is filled."""
        self._ends = False

    async def run(self) -> None:
        """Take over the transactional id, join the group, and work."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end)
        try:
            await self._producer.start(timeout_ms=PATIENCE_MS)
            tell("started")
            await self._consumer.subscribe([INPUT], on_assigned=self._joined, on_revoked=self._finish_reads)
            while not self._ends:
                await self._turn()
        finally:
            await self._consumer.close()
            await self._producer.close()

    def _end(self) -> None:
        self._ends = True

    async def _joined(self, added: set[TopicPartition]) -> None:
        tell("joined")

    async def _finish_reads(self, revoked: set[TopicPartition]) -> None:
        """Commit or give up what was read of these partitions, before another worker reads on."""
        await self._idle.wait()
        if self._closing is not None:
            await asyncio.wait([self._closing])

    async def _turn(self) -> None:
        """Copy what there is to read in a transaction; if that is not committed, go back to what is."""
        fetched = await self._consumer.fetch(timeout_ms=100, max_records=RECORDS_MAX)
        self._idle.clear()
        try:
            if not fetched:
                await self._settle()
                return
            # Who we are where the records were handed out: a later generation may have given them to others.
            if await self._is_committed(fetched, self._consumer.group_metadata()):
                return
        except AbortableTransactionError as error:
            await self._give_up(error)
        except RebalanceNeeded:
            pass  # Nothing was begun.
        finally:
            self._idle.set()
        await self._go_back()

    async def _is_committed(self, fetched: Sequence[Fetched], who: GroupMetadata) -> bool:
        """Return True if the transaction is or will be committed, False if it was aborted on purpose."""
        offsets = {each.tp: each.next_offset for each in fetched}
        self._producer.begin()
        count = await self._send(fetched)
        tell("sent")
        await asyncio.sleep(self._random.random() * WORK_SECONDS)
        if self._random.randrange(2):
            await self._producer.send_offsets(offsets, who)
            tell("offsets")
            offsets = {}
            await asyncio.sleep(self._random.random() * WORK_SECONDS)
        if not self._random.randrange(ABORTED_OF):
            await self._producer.abort()
            self._closing = None
            tell("aborted")
            return False
        self._closing = await self._producer.commit_soon(offsets, who)
        self._closing.add_done_callback(lambda outcome: self._tell_outcome(outcome, count))
        if self._random.randrange(2):
            await self._settle()
        return True

    async def _send(self, fetched: Sequence[Fetched]) -> int:
        to: dict[int, list[NewRecord]] = {}
        count = 0
        for each in fetched:
            for _, timestamp, key, value, _ in each.records():
                assert key is not None and value is not None
                partition = self._producer.partition_for(OUTPUT, key, OUTPUT_PARTITIONS)
                to.setdefault(partition, []).append((timestamp, key, changed(value), ()))
                count += 1
        for partition, records in to.items():
            await self._producer.send(OUTPUT, partition, records)
        return count

    @staticmethod
    def _tell_outcome(outcome: asyncio.Future[None], count: int) -> None:
        if not outcome.cancelled() and outcome.exception() is None:
            tell(f"committed {count}")

    async def _settle(self) -> None:
        if self._closing is not None:
            closing, self._closing = self._closing, None
            await closing

    async def _give_up(self, error: AbortableTransactionError) -> None:
        await self._producer.abort()
        self._closing = None
        tell("refused" if isinstance(error, TransactionRebalanced) else "failed")
        print(f"given up: {error!r} {error}", file=sys.stderr, flush=True)

    async def _go_back(self) -> None:
        """Read on from the committed offsets of one generation: in the next, others may move them."""
        while not self._ends:
            try:
                generation = self._consumer.group_metadata().generation
                tps = self._consumer.assignment
                committed = await self._consumer.committed(tps)
                if (self._consumer.group_metadata().generation, self._consumer.assignment) == (
                    generation,
                    tps,
                ):
                    for tp in tps:
                        self._consumer.seek(tp, committed[tp].offset if tp in committed else 0)
                    return
            except RebalanceNeeded:
                pass
            except MillstreamError as error:
                if not is_retriable(error):
                    raise
            await asyncio.sleep(RETRY_SECONDS)


async def work(bootstrap: str, name: str, seed: int) -> None:
    patient = {"connect_timeout_ms": PATIENCE_MS, "missing_topic_wait_ms": PATIENCE_MS}
    async with Client(bootstrap, client_id=name, **patient) as client:
        await Worker(client, name, seed).run()


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    bootstrap, name, seed = sys.argv[1:]
    try:
        asyncio.run(work(bootstrap, name, int(seed)))
    except FatalTransactionError as error:
        if not isinstance(error, ProducerFenced) and error.code is not ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            raise
        tell("fenced" if isinstance(error, ProducerFenced) else "forgotten")
        sys.exit(FENCED)


if __name__ == "__main__":
    main()
