"""Settings of cluster brokers take effect."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic, ResourceType
from kafka_client.errors import ConfigError
from kafka_client.topic_partition import TopicPartition
from logd.broker.cluster.controller.controller_role import settings_of
from logd.broker.cluster.replication.replica_fetcher import FetcherSettings
from logd.config.broker import BrokerConfig
from logd.config.load import from_properties
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.depth import deep

TPS = [TopicPartition("t", index) for index in range(4)]


@deep
async def test_leaders_are_given_back_to_preferred_replicas(zookeeper: str, tmp_path: Path) -> None:
    settings = {
        "leader.imbalance.check.interval.seconds": "1",
        "leader.imbalance.per.broker.percentage": "0",
    }
    async with Brokers(zookeeper, tmp_path, count=2, **settings) as brokers:
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", len(TPS), 2)])
        await brokers.until(lambda: _are_led_by_preferred(brokers))
        await brokers.stop(1)
        await brokers.until(lambda: all(_leader(brokers, tp) == 2 for tp in TPS))
        await brokers.start(1)
        await brokers.until(lambda: _are_led_by_preferred(brokers))


@deep
async def test_leaders_stay_where_they_are_not_to_be_given_back(
    zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaders are not given back if `auto.leader.rebalance.enable` is false, although the periodic check
    runs.
    """
    settings = {"auto.leader.rebalance.enable": "false", "leader.imbalance.check.interval.seconds": "1"}
    async with Brokers(zookeeper, tmp_path, count=1, **settings) as brokers:
        membership = brokers.up[1].broker.membership
        assert membership is not None
        controlling, looked, given_back = membership.member.controlling, [], []
        config = controlling._config

        def look() -> BrokerConfig:
            looked.append(1)
            return config()

        async def give_back(*_: object) -> None:
            given_back.append(1)

        monkeypatch.setattr(controlling, "_config", look)
        monkeypatch.setattr(controlling, "_rebalance_once", give_back)
        await brokers.until(lambda: len(looked) > 2)
        assert given_back == []


def _leader(brokers: Brokers, tp: TopicPartition) -> int | None:
    state = brokers.state(tp)
    return None if state is None else state.leader


def _are_led_by_preferred(brokers: Brokers) -> bool:
    states = [brokers.state(tp) for tp in TPS]
    return all(state is not None and state.leader == state.replicas[0] for state in states)


async def test_unclean_elections_are_allowed_while_running(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, count=1) as brokers:
        membership = brokers.up[1].broker.membership
        assert membership is not None
        controlling = membership.member.controlling
        controller = (await asyncio.shield(controlling._serving)).controller
        assert not controller.unclean_allowed("t")
        async with Client(brokers.bootstrap) as client:
            await Admin(client).incremental_alter_configs(
                "", {"unclean.leader.election.enable": "true"}, ResourceType.BROKER
            )
        await brokers.until(lambda: controller.unclean_allowed("t"))


async def test_brokers_talk_by_the_listener_that_is_named(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(
        zookeeper,
        tmp_path,
        count=2,
        listeners="CLIENTS://127.0.0.1:0,INNER://127.0.0.1:0",
        listener_security_protocol_map="CLIENTS:PLAINTEXT,INNER:PLAINTEXT",
        **{"inter.broker.listener.name": "inner"},
    ) as brokers:
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", len(TPS), 2)])
        await brokers.until(lambda: _are_led_by_preferred(brokers))
        for each in brokers.up.values():
            values = each.broker.metrics.values
            await brokers.until(lambda values=values: values("listener", listener="INNER")["connections"] > 0)  # type: ignore[misc]


async def test_a_listener_that_is_not_there_is_refused(zookeeper: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"inter\.broker\.listener\.name"):
        await Brokers(zookeeper, tmp_path, inter_broker_listener_name="OTHER").start(1)
    async with Brokers(zookeeper, tmp_path, count=1):
        pass  # nothing of the first one is left in the way


def test_fetchers_and_the_controller_go_by_kafkas_keys() -> None:
    keys = {
        "replica.fetch.max.bytes": 11,
        "replica.fetch.response.max.bytes": 12,
        "replica.fetch.min.bytes": 13,
        "replica.fetch.wait.max.ms": 14,
        "replica.fetch.backoff.ms": 15,
        "replica.socket.timeout.ms": 16,
    }
    config = BrokerConfig.of({key: str(value) for key, value in keys.items()})
    fetching = FetcherSettings.of(config)
    assert {key: getattr(fetching, key.replace(".", "_")) for key in keys} == keys
    config = BrokerConfig.of({"leader.imbalance.per.broker.percentage": "5"})
    assert settings_of(config).leader_imbalance_per_broker_percentage == 5


def test_a_broker_by_itself_says_that_they_have_no_effect() -> None:
    settings = {"replica.lag.time.max.ms": "5"}
    assert any("replica.lag.time.max.ms" in note for note in from_properties(settings).notes)
    assert not from_properties(settings | {"zookeeper.connect": "zk:2181"}).notes
