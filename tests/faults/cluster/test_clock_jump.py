"""A broker's wall clock is set hours ahead, hours back and right again, under producers, a group and
transactions: nothing is lost or doubled, nobody loses a lease, leaves an ISR or a group, and nothing fresh is
deleted.

As in Apache Kafka a transaction that is open when its coordinator's clock is put ahead by more than
transaction.timeout.ms is aborted; records that are older than retention.ms by a broker's clock go; and a
broker whose clock lies back by more than message.timestamp.after.max.ms refuses records of the present.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_client.wire.messages.describe_groups import DescribeGroupsRequest
from tests.faults.cluster.audit import assert_kept
from tests.faults.cluster.cluster import TRANSACTION, Cluster
from tests.faults.cluster.test_coordinators import (
    RECORDS_BETWEEN,
    Reader,
    Transactor,
    assert_whole,
    committed_records,
)
from tests.faults.cluster.writers import ConfluentWriter, OwnWriter
from tests.support import depth
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for
from tests.support.wall_clock import WallClock

pytest.importorskip("confluent_kafka")
pytestmark = depth.deep

HOURS = (5, -5, 0)
HOUR_MS = 3_600_000
PATIENT = {
    # Nothing is killed here: who leaves does so for the clock, and not since the machine is busy.
    "zookeeper.session.timeout.ms": 18_000,
    "log.retention.check.interval.ms": 500,
    "log.retention.ms": -1,
    "log.message.timestamp.after.max.ms": 24 * HOUR_MS,
}
FRESH = "fresh"


def roles(cluster: Cluster, *topics: str) -> Mapping[tuple[str, int], tuple[int, int, frozenset[int]]]:
    """Leader, its epoch and the in-sync replicas of each partition."""
    return {
        (topic, index): (state.leader_id, state.leader_epoch, frozenset(state.isr_nodes))
        for topic in topics
        for index, state in cluster.states(topic).items()
    }


def members(cluster: Cluster, group: str) -> tuple[str, set[str]]:
    """Return a group's state and its members."""
    broker = cluster.brokers[cluster.coordinator(group)]
    with RawClient(broker.port, broker.host) as client:
        (group_description,) = client.request(DescribeGroupsRequest(groups=[group]), 5).groups
    return group_description.group_state, {member.member_id for member in group_description.members}


def start_of(cluster: Cluster, topic: str) -> list[int]:
    """Return the log start offset of each partition, by its leader."""
    starts = []
    for partition in cluster.states(topic):
        broker = cluster.brokers[cluster.leader(topic, partition)]
        with RawClient(broker.port, broker.host) as client:
            starts.append(client.fetch(topic, 0, partition=partition).log_start_offset)
    return starts


def write_now(cluster: Cluster, topic: str) -> None:
    """Write a few segments of records with the present's time to each partition."""
    for partition in cluster.states(topic):
        broker = cluster.brokers[cluster.leader(topic, partition)]
        with RawClient(broker.port, broker.host) as client:
            for _ in range(5):
                now_ms = time.time_ns() // 1_000_000
                answer = client.produce(topic, [(now_ms, None, bytes(1000), ())], partition=partition)
                assert not answer.error_code


def test_a_brokers_clock_is_set(tmp_path: Path, zookeeper: str) -> None:
    cluster = Cluster(tmp_path, zookeeper, **PATIENT)
    clocks = {id_: WallClock(tmp_path / f"clock-{id_}") for id_ in cluster.brokers}
    for id_, broker in cluster.brokers.items():
        broker.environment = clocks[id_].environment
    with cluster:
        topics = [cluster.create_topic(name) for name in ("confluent", "own", "t")]
        cluster.create_topic(FRESH, retention_ms=f"{24 * HOUR_MS}", segment_bytes="2000")
        with (
            ConfluentWriter(cluster.bootstrap, "confluent") as writer,
            OwnWriter(cluster.bootstrap, "own") as own,
            closing(Reader(cluster.bootstrap, "confluent", "g")) as reader,
        ):
            transactor = Transactor(cluster.bootstrap, "t")

            def all_go_on() -> None:
                committed = len(transactor.committed)
                write_now(cluster, FRESH)
                for each in (writer, own):
                    each.goes_on(RECORDS_BETWEEN)
                reader.read_more(RECORDS_BETWEEN)
                transactor.goes_on(since=committed)

            all_go_on()
            before = roles(cluster, *topics, FRESH), members(cluster, "g")
            assert before[1][0] == "Stable"
            for victim in {
                cluster.controller,
                cluster.coordinator("g"),
                cluster.coordinator("x", TRANSACTION),
            }:
                for hours in HOURS:
                    clocks[victim].set_by(timedelta(hours=hours))
                    all_go_on()
            assert (roles(cluster, *topics, FRESH), members(cluster, "g")) == before
            victim = cluster.coordinator("g")
            clocks[victim].set_by(timedelta(hours=-5))
            cluster.restart(victim)
            reader.reopen()
            all_go_on()
            wait_for(lambda: all(cluster.is_in_sync(topic) for topic in topics))
            assert set(start_of(cluster, FRESH)) == {0}
            transactor.finish()
            writer.finish()
            wait_for(lambda: reader.read_some() == writer.sent)
            assert_whole(transactor, committed_records(cluster.bootstrap, "t"))
            wrote = assert_kept(cluster, writer, own)
        print(f"{wrote} records; {len(transactor.committed)} of {transactor.started} transactions committed;")
        print(f"{sum(reader.committed.values())} positions committed; {dict(transactor.errors)}")
