"""A killed mirror's unacknowledged batches may reach the target after the next mirror read its end offset.

The end offset that a target with replicas reports is the high watermark. Batches of the killed mirror that
were not replicated yet lie after that offset, and batches on the wire come later still. Once the next mirror
was another producer and sent the same batches again. Both copies were written, and the mirror ended with
"somebody else writes there" at every start. Now the next mirror takes over the killed one's producer id,
epoch and sequence numbers. By these the target recognizes the second copy of a batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kafka_client import BatchFetcher, Client, TopicPartition
from kafka_client.errors import ErrorCode
from kafka_client.records import BatchHeader, build_batch, iter_batches, read_header, restamp
from kafka_client.wire import ApiKey, decode, decode_response_header
from kafka_client.wire.messages.produce import ProduceResponse
from kafka_client.wire.produce import encode_produce_request
from mirror.forward_batch import Passed
from mirror.link import Link
from tests.mirror.pair import Pair, numbered, produce
from tests.support import java
from tests.support.depth import deep

NewName = Callable[[], str]
VERSION = 9


@pytest.fixture(params=["logd", pytest.param("kafka", marks=java.needs_kafka)])
def pair(pair: Pair, request: pytest.FixtureRequest) -> Pair:
    """Return a pair with either broker as the target: both have to keep the producer state alike."""
    return pair if request.param == "logd" else Pair(pair.dc1, request.getfixturevalue("kafka"))


@dataclass
class KilledMirror:
    """A killed mirror's batches in flight, with its producer's stamp; `land` sends them to the target."""

    pair: Pair
    remote: str
    batches: list[bytes]

    async def land(self) -> list[int]:
        """Send the batches to the target and return its error codes."""
        codes = []
        async with Client(self.pair.dc2) as client:
            metadata = await client.metadata([self.remote])
            leader = metadata.topics[self.remote].partitions[0].leader
            connection = await client.connection(leader)
            for batch in self.batches:

                def frame(correlation_id: int, batch: bytes = batch) -> list[bytes | bytearray | memoryview]:
                    return encode_produce_request(
                        [(self.remote, [(0, batch)])], VERSION, correlation_id, "killed", acks=-1
                    )

                answer = await (await connection.send(frame, timeout=60))
                _, pos = decode_response_header(ApiKey.PRODUCE, VERSION, answer)
                response = decode(ProduceResponse, VERSION, answer, pos)
                codes.append(response.responses[0].partition_responses[0].error_code)
        return codes


async def last_header(bootstrap: str, topic: str, end: int) -> BatchHeader:
    """Return the header of the batch that ends at `end`."""
    async with Client(bootstrap) as client, BatchFetcher(client) as fetcher:
        fetcher.add(TopicPartition(topic, 0), end - 1)
        (fetched, *_) = await fetcher.fetch()
        return next(header for _, header in iter_batches(fetched.buffer) if header.next_offset == end)


def stamped(start: int, count: int, like: BatchHeader, sequence: int) -> bytes:
    batch = build_batch(numbered(count, start))
    return restamp(
        batch,
        read_header(batch),
        producer_id=like.producer_id,
        producer_epoch=like.producer_epoch,
        base_sequence=sequence,
    )


async def killed_after_ten(pair: Pair, topic: str) -> KilledMirror:
    """Ten records are copied and acknowledged, five batches of ten more are on their way."""
    await pair.create(topic, retention_ms="-1")
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    assert await pair.copy(topic) == 10
    like = await last_header(pair.dc2, f"dc1.{topic}", 10)
    await produce(pair.dc1, topic, {0: [numbered(10, at) for at in range(10, 60, 10)]})
    return KilledMirror(pair, f"dc1.{topic}", [stamped(at, 10, like, at) for at in range(10, 60, 10)])


@deep
@pytest.mark.parametrize("landing", [1, 3, 5])
async def test_batches_that_come_after_the_next_mirror_looked_are_not_written_twice(
    pair: Pair, new_name: NewName, landing: int
) -> None:
    topic = new_name()
    killed = await killed_after_ten(pair, topic)
    killed.batches = killed.batches[:landing]
    async with Link(pair.link(topic)) as link:  # it has seen that the target ends at 10
        assert link.status()[TopicPartition(topic, 0)].position == 10
        assert await killed.land() == [ErrorCode.NONE] * landing
        await link.run(until_caught_up=True)
    assert (await pair.verify(topic)).equal
    assert await pair.copy(topic) == 0


@deep
async def test_batches_that_come_after_the_next_mirror_wrote_them_are_not_written_twice(
    pair: Pair, new_name: NewName
) -> None:
    topic = new_name()
    killed = await killed_after_ten(pair, topic)
    assert await pair.copy(topic) == 50
    assert await killed.land() == [ErrorCode.NONE] * 5, "known for what they are"
    await produce(pair.dc1, topic, {0: [numbered(10, at) for at in range(60, 120, 10)]})
    assert await pair.copy(topic) == 60
    assert set(await killed.land()) == {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
    assert (await pair.verify(topic)).equal


@deep
async def test_the_very_first_batch_is_not_written_twice(pair: Pair, new_name: NewName) -> None:
    """While the copy is empty, only the sync says under which producer id its first batch is in flight."""
    topic = new_name()
    await pair.create(topic, retention_ms="-1")
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(topic)) as link:
        copy = link._mirror.copies[TopicPartition(topic, 0)]
        identity = copy.identity
        await link._mirror._write_first_syncs([(copy, Passed(b"", 10, 0, 10))])
        # killed, with the first batch on its way
    like = read_header(build_batch(numbered(10)))._replace(
        producer_id=identity.producer_id, producer_epoch=identity.epoch
    )
    killed = KilledMirror(pair, f"dc1.{topic}", [stamped(0, 10, like, 0)])
    async with Link(pair.link(topic)) as link:
        assert await killed.land() == [ErrorCode.NONE]
        await link.run(until_caught_up=True)
    assert (await pair.verify(topic)).equal
    assert (await pair.verify(topic)).partitions[0].target_records == 10


@deep
async def test_a_late_batch_that_is_another_one_has_the_place_found_anew(
    pair: Pair, new_name: NewName
) -> None:
    """Positions are looked up again if a late batch has other bounds than the next mirror's.

    The killed mirror's batch has twenty records; the next mirror reads them in two batches of ten, since the
    source was compacted or its leader changed. The target refuses the second batch, and has all of them.
    """
    topic = new_name()
    killed = await killed_after_ten(pair, topic)
    like = await last_header(pair.dc2, f"dc1.{topic}", 10)
    killed.batches = [stamped(10, 20, like, 10)]
    async with Link(pair.link(topic)) as link:
        assert await killed.land() == [ErrorCode.NONE]
        await link.run(until_caught_up=True)
        assert link.quarantined == {}
    assert (await pair.verify(topic)).equal


@deep
async def test_two_mirrors_of_one_flow_write_everything_once(pair: Pair, new_name: NewName) -> None:
    """Records are written once even if a mirror that was paused goes on at the same time as its successor."""
    topic = new_name()
    await killed_after_ten(pair, topic)
    async with Link(pair.link(topic)) as stopped:
        assert await pair.copy(topic) == 50
        await produce(pair.dc1, topic, {0: [numbered(10, at) for at in range(60, 160, 10)]})
        assert await pair.copy(topic) == 100
        await stopped.run(until_caught_up=True)
        await produce(pair.dc1, topic, {0: [numbered(10, 160)]})
        await asyncio.gather(pair.copy(topic), stopped.run(until_caught_up=True))
    assert (await pair.verify(topic)).equal
