"""A cluster that goes away while a flow runs: lag is unknown and not 0, and what stands still says why."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client import Client, TopicPartition
from kafka_client.errors import ErrorCode
from kafka_client.wire import ApiKey
from mirror import progress, stalls
from mirror.cli import _summary
from mirror.links import SupervisedLink
from mirror.offsets import OffsetSync, OffsetSyncs
from tests.kafka_client.fake_broker import FakeBroker, ReceivedRequest
from tests.mirror.pair import Pair, numbered, produce
from tests.mirror.test_quarantine import HalfStuckMirror, HalfStuckTarget
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

TOPIC = "flights"
TP = TopicPartition(TOPIC, 0)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(stalls, "STALL_SECONDS", 0.5)


async def test_a_cluster_that_is_away_is_named_and_lag_is_unknown_without_the_source(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mirror")
    with LogdProcess(tmp_path / "dc1") as dc1, LogdProcess(tmp_path / "dc2") as dc2:
        pair = Pair(dc1.bootstrap, dc2.bootstrap)
        await pair.create(TOPIC)
        await produce(pair.dc1, TOPIC, {0: [numbered(10)]})
        flow = SupervisedLink(pair.link(TOPIC))
        running = asyncio.create_task(flow.run())
        await until(lambda: flow.link is not None and flow.link.status()[TP].records == 10)
        link = flow.link
        assert link is not None
        await until(lambda: link.status()[TP].lag_seconds == 0 and flow.exit_status == 0)

        dc2.kill()
        await produce(pair.dc1, TOPIC, {0: [numbered(5, 10)]})
        unacknowledged = "the target does not acknowledge: "
        await until(lambda: (link.status()[TP].stalled or "").startswith(unacknowledged))
        await until(lambda: link.status()[TP].lag_records == 5 and link.status()[TP].lag_seconds)
        assert flow.exit_status == 1
        dc2.start()
        await until(lambda: link.status()[TP].lag_records == 0)
        await until(lambda: f"dc1->dc2: {TP} is copied again" in caplog.messages)

        dc1.kill()
        silent = "the source does not answer: "
        await until(lambda: (link.status()[TP].stalled or "").startswith(silent))
        status = link.status()[TP]
        assert (status.lag_records, status.lag_seconds) == (None, None)
        assert status.rpo_seconds
        assert "1 partitions, lag unknown, the source does not answer, 1 not copied" in _summary(flow, False)
        (line,) = link.progress.lines()
        assert line.startswith(f"{TP} not copied for ")
        values = flow.metrics.values("mirror-link")
        assert (values["stalled_partitions"], values["silent_partitions"]) == (1, 1)
        assert math.isnan(flow.metrics.values("mirror-partition")["records-lag"])
        assert any("the source does not answer" in message for message in caplog.messages)
        assert flow.exit_status == 1
        dc1.start()
        await until(lambda: link.status()[TP].lag_records == 0 and flow.exit_status == 0)
        flow.stop()
        await running
        assert flow.exit_status == 0


async def test_a_flow_that_does_not_open_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mirror.links.STALL_SECONDS", 0.01)

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    silent = "{}:{}".format(*server.sockets[0].getsockname())
    flow = SupervisedLink(Pair(silent, silent).link(TOPIC))
    running = asyncio.create_task(flow.run())
    await until(lambda: any("is not open after" in message for message in caplog.messages))
    assert "connecting to dc1" in caplog.messages[-1]
    flow.stop()
    await running
    server.close()


async def test_a_target_without_enough_replicas_is_the_reason(
    pair: Pair, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    await pair.create(topic, 2)
    batches = [numbered(1)] * HalfStuckMirror.RECORDS
    await produce(pair.dc1, topic, {0: batches, 1: batches})
    async with FakeBroker() as broker, Client(pair.dc1) as source:
        target = HalfStuckTarget(broker)
        async with Client(broker.bootstrap) as client:
            mirror = HalfStuckMirror(source, client, topic)
            await mirror.source.open()
            await mirror.copy_the_good_one()
            reason = "the target does not acknowledge: NOT_ENOUGH_REPLICAS"
            await until(lambda: mirror.source.stall_reason(mirror.stuck).startswith(reason))
            mirror.source.copies[mirror.good].source.failed("refused")
            assert mirror.source.stall_reason(mirror.good) == "the source does not answer: refused"
            target.is_stuck = False
            await mirror.source.drain()
            assert mirror.source.copies[mirror.stuck].lag_records() == 0
            await mirror.source.close()


async def test_syncs_that_are_not_acknowledged_are_the_reason() -> None:
    """With min.insync.replicas=2 for the topic of syncs nothing was copied, and nothing said so."""

    def refuse(request: ReceivedRequest) -> bytes:
        return request.produced((0, ErrorCode.NOT_ENOUGH_REPLICAS, -1))

    async with FakeBroker() as broker:
        broker.topics = {"syncs": {0: 1}}
        broker.on(ApiKey.PRODUCE, refuse)
        async with Client(broker.bootstrap) as client:
            syncs = OffsetSyncs(client, "syncs", 1)
            await syncs._producer.start()
            written = await syncs.write(OffsetSync(TP, 0, 0, 0, 0), 1)
            await until(lambda: syncs.trouble().startswith("syncs takes no offset sync: NOT_ENOUGH_REPLICAS"))
            broker.on(ApiKey.PRODUCE, lambda request: request.produced((0, 0, 0)))
            await written
            assert not syncs.trouble()
            await syncs.close()
