"""A killed mirror's last batches, not acknowledged to anybody, come to the target after the next one looked.

With replicas the target's end that a client hears is the high watermark: what the killed mirror had produced
and was not replicated yet lay behind it, and what was on the wire came later still. The next mirror, another
producer, sent the same batches again; both were written, and it ended with "somebody else writes there", at
every start anew. Now it goes on under the killed one's producer id, epoch and sequence numbers, by which the
target knows the second copy of a batch for what it is.
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
from mirror.link import Link
from tests.mirror.pair import Pair, numbered, produce
from tests.support import java
from tests.support.depth import deep

NewName = Callable[[], str]
VERSION = 9


@pytest.fixture(params=["logd", pytest.param("kafka", marks=java.needs_kafka)])
def pair(pair: Pair, request: pytest.FixtureRequest) -> Pair:
    """With either of them as the target: what is left to its producer state has to be so in both."""
    return pair if request.param == "logd" else Pair(pair.dc1, request.getfixturevalue("kafka"))


@dataclass
class KilledMirror:
    """What one had on its way: batches with its stamp, which `land` brings to the target."""

    pair: Pair
    remote: str
    batches: list[bytes]

    async def land(self) -> list[int]:
        """The error codes the target answers with."""
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
    """Of the batch in front of `end`."""
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
    """Of a copy that has nothing yet only the sync says as whom its first batch is on its way."""
    topic = new_name()
    await pair.create(topic, retention_ms="-1")
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(topic)) as link:
        copy = link._mirror.copies[TopicPartition(topic, 0)]
        identity = copy.identity
        await link._mirror._write_first_syncs([copy])
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
    """The killed mirror's batch held twenty records where the next one reads them in two batches of ten (the
    source is compacted, or its leader changed): the target refuses the second, and has all twenty."""
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
    """One was stopped for long and goes on beside its successor."""
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
