"""Controlled shutdown: brokers that stop hand over their leadership."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_client import Admin, BatchProducer, Client, ElectionType, NewTopic
from kafka_client.topic_partition import TopicPartition
from logd.broker.cluster.controlled_shutdown import ControlledShutdown
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.depth import deep

TOPIC, PARTITIONS = "t", 6
TPS = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]


async def _create(brokers: Brokers) -> None:
    async with Client(brokers.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
    await brokers.until(lambda: _all_in_sync(brokers))


def _all_in_sync(brokers: Brokers) -> bool:
    states = [brokers.state(tp) for tp in TPS]
    return all(state is not None and set(state.isr) == {1, 2, 3} for state in states)


@deep
async def test_a_rolling_restart_costs_a_producer_retries_only(zookeeper: str, tmp_path: Path) -> None:
    settings = {"min_insync_replicas": "2", "controlled.shutdown.retry.backoff.ms": "60000"}
    async with Brokers(zookeeper, tmp_path, **settings) as brokers:
        await _create(brokers)
        acknowledged = {tp.partition: 0 for tp in TPS}
        is_over = False
        async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:

            async def produce(partition: int) -> None:
                while not is_over:
                    count = acknowledged[partition]
                    await (await producer.send(TOPIC, partition, [(count, None, b"%d" % count, ())]))
                    acknowledged[partition] += 1

            producing = [asyncio.create_task(produce(tp.partition)) for tp in TPS]
            for id_ in (1, 2, 3):
                await _stop_after_handing_over(brokers, id_)
                before = dict(acknowledged)
                await brokers.until(lambda before=before: all(acknowledged[p] > before[p] for p in before))
                await brokers.start(id_)
                await brokers.until(lambda: _all_in_sync(brokers))
            is_over = True
            await asyncio.gather(*producing)
        for tp in TPS:
            await brokers.until(
                lambda tp=tp: (
                    {replica.high_watermark for replica in brokers.replicas(tp).values()}
                    == {acknowledged[tp.partition]}
                )
            )


async def _stop_after_handing_over(brokers: Brokers, id_: int) -> None:
    """Stop a broker and check that it led nothing when its connections closed."""
    assert await _led_at_its_end(brokers, id_) == []


async def _led_at_its_end(brokers: Brokers, id_: int) -> list[TopicPartition]:
    """Stop the broker and return the partitions that it led when it closed its connections."""
    broker = brokers.up[id_]
    leading = broker.broker.leading
    assert leading is not None
    close, led = broker._server.close, []

    async def close_server() -> None:
        led.extend(leading.led)
        await close()

    broker._server.close = close_server  # type: ignore[method-assign]
    await brokers.stop(id_)
    return led


@pytest.mark.parametrize(
    "settings", [{"controlled.shutdown.enable": "false"}, {"controlled.shutdown.max.retries": "0"}]
)
async def test_nothing_is_handed_over_where_that_is_set(
    zookeeper: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    async with Brokers(zookeeper, tmp_path, **settings) as brokers:
        await _create(brokers)
        assert await _led_at_its_end(brokers, 1)
        await brokers.until(
            lambda: all((state := brokers.state(tp)) is not None and state.leader in (2, 3) for tp in TPS)
        )


@deep
async def test_brokers_that_all_stop_wait_for_nobody(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, controlled_shutdown_retry_backoff_ms="600000") as brokers:
        await _create(brokers)
        async with asyncio.timeout(60):
            await asyncio.gather(*(brokers.stop(id_) for id_ in (1, 2, 3)))


async def test_the_last_broker_waits_for_nobody(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(
        zookeeper, tmp_path, count=1, controlled_shutdown_retry_backoff_ms="600000"
    ) as brokers:
        async with asyncio.timeout(60):
            await brokers.stop(1)


async def test_the_next_controller_knows_who_wants_to_stop(zookeeper: str, tmp_path: Path) -> None:
    """New controllers know which brokers are shutting down.

    The new controller did not know, and had the broker lead again until its session was over.
    """
    async with Brokers(zookeeper, tmp_path) as brokers:
        await _create(brokers)
        first = brokers.controller.broker.node_id
        stops, stays = sorted({1, 2, 3} - {first})
        broker = brokers.up[stops].broker
        assert broker.leading is not None
        await ControlledShutdown(brokers.member(stops), broker.leading, broker.config).run()
        await brokers.member(first).stand_down()
        await brokers.until(lambda: brokers.up[stays].broker.catalog.controller is not None)
        async with Client(f"127.0.0.1:{brokers.up[stays].broker.endpoint.port}") as client:
            await Admin(client).elect_leaders(ElectionType.PREFERRED, TPS)
        assert all(each.broker.image.brokers[stops].is_shutting_down for each in brokers.up.values())
        states = [brokers.up[stays].broker.image.partitions[tp] for tp in TPS]
        assert all(state.leader != stops and stops not in state.isr for state in states)
        await brokers.stop(stops)
        await brokers.start(stops)
        await brokers.until(lambda: _all_in_sync(brokers))
