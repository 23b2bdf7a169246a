"""Replication between brokers over real connections."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchProducer, Client
from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError
from kafka_client.fetcher.offsets import EARLIEST, LATEST, list_offsets
from kafka_client.records import build_batch
from kafka_client.wire import Message
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafka_client.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from logd.replication import Standby
from tests.logd.broker.cluster.nodes import TOPIC, TP, Node, Nodes
from tests.support.depth import deep
from tests.support.raw_client import RawClient

LAG_MS = 1000
"""Seconds longer than a busy disk delays all nodes, which share a thread."""


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def batch(text: str, count: int = 1) -> memoryview:
    return memoryview(build_batch([(1000, None, f"{text}-{n}".encode(), ()) for n in range(count)]))


async def acknowledged(node: Node, text: str, count: int = 1) -> None:
    """Append a record with acks=all."""
    partition = node.partition
    appended = partition.produce(batch(text, count), 1000, -1)
    waiting = partition.flushed(appended)
    if waiting is not None:
        async with asyncio.timeout(60):
            await waiting


async def test_followers_have_every_byte_and_then_it_is_acknowledged(tmp_path: Path) -> None:
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic()
        for n in range(20):
            await acknowledged(nodes.leader, str(n), count=3)
        assert all(node.partition.log_end_offset == 60 for node in nodes.nodes.values())
        await nodes.until(nodes.are_equal)


async def test_without_all_in_sync_replicas_nothing_is_acknowledged(tmp_path: Path) -> None:
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic()
        await acknowledged(nodes.leader, "first")
        fetcher = nodes.nodes[3].assignment.fetchers
        fetcher.unfollow(nodes.nodes[3].partition.tp)
        # What it asked for before is answered with this one.
        nodes.leader.partition.produce(batch("perhaps"), 1000, -1)
        waiting = asyncio.ensure_future(acknowledged(nodes.leader, "second"))
        await nodes.until(lambda: nodes.nodes[2].partition.log_end_offset == 3)
        assert not waiting.done()
        nodes.apply([nodes.state.as_change(nodes.leader.partition.tp)])  # followed again
        await waiting


async def test_a_client_waits_for_the_others_as_long_as_it_says(tmp_path: Path) -> None:
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic()
        for other in (2, 3):
            nodes.nodes[other].assignment.fetchers.unfollow(nodes.leader.partition.tp)
        nodes.leader.partition.produce(batch("fetched by what is asked already"), 1000, 1)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=50,
            topic_data=[
                TopicProduceData(
                    name=TOPIC,
                    partition_data=[PartitionProduceData(index=0, records=bytes(batch("waits")))],
                )
            ],
        )
        async with Client(f"127.0.0.1:{nodes.leader.server.broker.endpoint.port}") as client:
            response = await client.request(request)
        ((answer,),) = (topic.partition_responses for topic in response.responses)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_nobody_waits_for_one_that_is_heard_last_to_be_gone(tmp_path: Path) -> None:
    """Leaders stop waiting for a lost broker when its partition's ISR shrinks.

    Many partitions change when a broker is lost, and the changes come in parts: the broker has left the ISR,
    and counts as alive for a while longer. A follower with the whole log sends nothing more.
    """
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic()
        await acknowledged(nodes.leader, "first")
        await nodes.nodes[3].assignment.stop()
        waiting = asyncio.ensure_future(acknowledged(nodes.leader, "second"))
        await nodes.until(lambda: nodes.nodes[2].partition.log_end_offset == 2)
        await asyncio.sleep(4 * nodes.fetch_wait_ms / 1000)
        assert not waiting.done()
        nodes.tells_one_by_one = True
        await nodes.nodes[3].stop()
        async with asyncio.timeout(nodes.lag_ms / 1000 / 4):
            await waiting


@deep
async def test_one_that_stays_behind_leaves_and_comes_back(tmp_path: Path) -> None:
    async with Nodes(tmp_path, lag_ms=LAG_MS) as nodes:
        await nodes.create_topic()
        await acknowledged(nodes.leader, "first")
        nodes.nodes[3].assignment.fetchers.unfollow(nodes.nodes[3].partition.tp)
        nodes.leader.partition.produce(batch("perhaps"), 1000, -1)
        await acknowledged(nodes.leader, "second")  # once it has left
        assert nodes.state.isr == (1, 2)
        assert nodes.leader.partition.in_sync_replicas == 2
        nodes.apply([nodes.state.as_change(nodes.leader.partition.tp)])
        await nodes.until(lambda: set(nodes.state.isr) == {1, 2, 3})
        await nodes.until(nodes.are_equal)


async def test_min_insync_replicas(tmp_path: Path) -> None:
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic({"min.insync.replicas": "2"})
        await nodes.nodes[2].stop()
        await acknowledged(nodes.leader, "two are left")
        await nodes.nodes[3].stop()
        with pytest.raises(KafkaError) as raised:
            nodes.leader.partition.produce(batch("one is left"), 1000, -1)
        assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_a_partition_with_fewer_replicas_than_min_insync_replicas_needs_all_of_them(
    tmp_path: Path,
) -> None:
    """Partitions with fewer replicas than min.insync.replicas need all of them in sync (KAFKA-15583)."""
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic({"min.insync.replicas": "7"})
        await acknowledged(nodes.leader, "all three are in sync")
        await nodes.nodes[3].stop()
        with pytest.raises(KafkaError, match=r"2 of 3 replicas in sync, min\.insync\.replicas is 7"):
            nodes.leader.partition.produce(batch("two are left"), 1000, -1)


async def test_one_that_fetches_before_it_is_heard_of_joins_all_the_same(tmp_path: Path) -> None:
    """Followers that fetch before their registration is known join the ISR afterwards.

    Such a follower has the whole log and says so once: its fetch session names only partitions that change.
    """
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic({"min.insync.replicas": "2"})
        await acknowledged(nodes.leader, "all there is")
        for other in (nodes.nodes[2], nodes.nodes[3]):
            await other.stop()
        await nodes.nodes[2].start(registered=False)
        nodes.apply([nodes.state.as_change(TP)])
        core = nodes.leader.leading.led[TP].core
        await nodes.until(lambda: core._followers[2].broker_epoch == nodes.nodes[2].epoch)
        assert nodes.state.isr == (1,)
        nodes.nodes[2].register()
        await nodes.until(lambda: set(nodes.state.isr) == {1, 2}, seconds=10)
        await acknowledged(nodes.leader, "more")


async def test_one_that_is_registered_anew_joins_without_a_record(tmp_path: Path) -> None:
    """Brokers that register again join the ISR without a new record.

    The session had ended, the process and its connections had not: only the broker epoch changes.
    """
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic()
        await acknowledged(nodes.leader, "all there is")
        await nodes.until(nodes.are_equal)
        nodes.decide(lambda controller: controller.change_brokers(departed=[2]))
        assert nodes.state.isr == (1, 3)
        nodes.nodes[2].epoch = nodes.next_epoch()
        nodes.nodes[2].register()
        await nodes.until(lambda: set(nodes.state.isr) == {1, 2, 3}, seconds=10)


async def test_a_leader_that_comes_back_gives_up_what_nobody_else_had(tmp_path: Path) -> None:
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic()
        await acknowledged(nodes.leader, "kept", count=5)
        first = nodes.leader
        for other in (2, 3):
            nodes.nodes[other].assignment.fetchers.unfollow(first.partition.tp)
        await asyncio.sleep(0.1)
        for n in range(4):
            first.partition.produce(batch(f"lost-{n}"), 1000, 1)
        await first.stop()
        assert nodes.leader.id == 2
        await acknowledged(nodes.leader, "instead", count=2)
        await first.start()
        await nodes.until(lambda: set(nodes.state.isr) == {1, 2, 3})
        await nodes.until(nodes.are_equal)
        assert first.partition.log_end_offset == 7


async def test_a_leader_that_is_silent_holds_nobody_up(tmp_path: Path) -> None:
    """Elections do not wait for a silent leader's answer about its offsets."""
    async with Nodes(tmp_path, count=2) as nodes:
        await nodes.create_topic()
        follower = nodes.nodes[2]
        is_asked, is_over = asyncio.Event(), asyncio.Event()

        async def silent(broker: int, message: Message, *, lane: str = "") -> Any:
            is_asked.set()
            await is_over.wait()
            raise ConnectionClosed("at last")

        follower.peers.request = silent  # type: ignore[method-assign,assignment]
        fetchers = follower.assignment.fetchers
        following = fetchers.following(TP)
        assert following is not None
        following.core.next = Standby.LEADER_OFFSETS
        fetchers._by_leader[1]._look_at(TP)
        await is_asked.wait()
        state = dataclasses.replace(nodes.state, leader_epoch=nodes.state.leader_epoch + 1)
        try:
            async with asyncio.timeout(10):
                await follower.assignment.rest(follower.partition, state)
        finally:
            is_over.set()
        following.core.next = following.core._fetch()
        fetchers.follow(following)
        await acknowledged(nodes.leader, "followed again")


async def test_a_leader_that_hears_of_it_last_counts_those_whom_it_has_refused(tmp_path: Path) -> None:
    """Leaders count followers that they refused before they knew of their election.

    The story is a rolling restart under kafkajs: both replicas had the last record of the leader that
    stopped. The next leader did not know of its election when the other replica asked, and refused it. The
    refused replica had nothing more to say. A producer that sent the same record again waited for
    replica.lag.time.max.ms.
    """
    async with Nodes(tmp_path, 4) as nodes:
        await nodes.create_topic()
        await acknowledged(nodes.leader, "first")
        await nodes.until(nodes.are_equal)
        nodes.nodes[4].assignment.fetchers.unfollow(TP)
        nodes.leader.partition.produce(batch("fetched by what is asked already"), 1000, 1)
        nodes.leader.partition.produce(batch("not committed"), 1000, 1)
        one, two, three = nodes.nodes[1], nodes.nodes[2], nodes.nodes[3]
        await nodes.until(lambda: [node.partition.log_end_offset for node in (two, three)] == [3, 3])
        two.hears = nodes.nodes[4].hears = False
        await one.stop()
        await nodes.nodes[4].stop()
        assert nodes.leader is two
        following = three.assignment.fetchers.following(TP)
        assert following is not None
        await nodes.until(lambda: following.not_before > 0)  # it is refused
        assert two.partition.high_watermark < 3
        two.hears = True
        nodes.apply([nodes.state.as_change(TP)])
        await nodes.until(lambda: two.partition.high_watermark == 3, seconds=20)


async def test_one_that_lacks_what_the_leader_has_deleted_begins_afresh(tmp_path: Path) -> None:
    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic({"file.delete.delay.ms": "0"})
        await acknowledged(nodes.leader, "old", count=3)
        await nodes.nodes[3].stop()
        for n in range(4):
            await acknowledged(nodes.leader, f"gone-{n}", count=2)
        leader = nodes.leader.partition
        nodes.leader.server.broker.housekeeping.discard(leader.delete_records_before(9))
        await nodes.until(lambda: nodes.nodes[2].partition.log_start_offset == 9)  # told with the next answer
        await nodes.nodes[3].start()
        await nodes.until(lambda: set(nodes.state.isr) == {1, 2, 3})
        await acknowledged(nodes.leader, "new")
        await nodes.until(lambda: nodes.nodes[3].partition.high_watermark == 12)
        assert {node.partition.log_start_offset for node in nodes.nodes.values()} == {9}


async def test_a_client_produces_through_elections(tmp_path: Path) -> None:
    """Records that were acknowledged during elections are in the log once and in order."""
    async with Nodes(tmp_path, count=2) as nodes:
        await nodes.create_topic()
        port = nodes.leader.server.broker.endpoint.port
        async with Client(f"127.0.0.1:{port}") as client, BatchProducer(client) as producer:
            for n in range(50):
                await (await producer.send(TOPIC, 0, [(n, None, b"%d" % n, ())]))
        await nodes.until(nodes.are_equal)
        assert nodes.nodes[2].partition.high_watermark == 50


async def test_the_latest_offset_is_not_told_before_it_is_known_again(tmp_path: Path) -> None:
    """Leaders answer no latest offset after an election before they know it.

    A new leader told consumers less than others had read already (KIP-207).
    """

    def request(timestamp: int, replica_id: int = -1) -> ListOffsetsRequest:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsTopic(name=TOPIC, partitions=[partition])
        return ListOffsetsRequest(replica_id=replica_id, topics=[topic])

    def result_of(answer: ListOffsetsResponse) -> tuple[int, int]:
        ((row,),) = (topic.partitions for topic in answer.topics)
        return row.error_code, row.offset

    def ask(port: int, timestamp: int, version: int) -> tuple[int, int]:
        with RawClient(port) as client:
            return result_of(client.request(request(timestamp), version))

    async with Nodes(tmp_path) as nodes:
        await nodes.create_topic()
        leader = nodes.leader
        await acknowledged(leader, "committed")
        for other in (2, 3):
            nodes.nodes[other].assignment.fetchers.unfollow(TP)
        for value in (b"fetched by what is asked already", b"not fetched"):
            leader.partition.produce(memoryview(build_batch([(2000, None, value, ())])), 2000, 1)
        elected = dataclasses.replace(nodes.state, leader_epoch=1, partition_epoch=1)
        leader.assignment.assign(leader.partition, elected)
        port = leader.server.broker.endpoint.port

        async def list_offset(timestamp: int, version: int = 7) -> tuple[int, int]:
            return await asyncio.to_thread(ask, port, timestamp, version)

        unknown = ErrorCode.OFFSET_NOT_AVAILABLE, -1
        assert await list_offset(LATEST) == await list_offset(LATEST, 5) == await list_offset(1500) == unknown
        assert await list_offset(LATEST, 4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert await list_offset(EARLIEST) == await list_offset(1000) == (0, 0)
        assert await list_offset(3000) == (0, -1)
        assert result_of(await nodes.nodes[2].peers.request(1, request(LATEST, replica_id=2))) == (0, 3)
        async with Client(f"127.0.0.1:{port}") as client:
            waiting = asyncio.ensure_future(list_offsets(client, {TP: LATEST}))
            for other in (2, 3):
                node = nodes.nodes[other]
                node.assignment.assign(node.partition, elected)
            assert (await waiting)[TP].offset == 3
            assert await list_offset(LATEST) == (0, 3)
