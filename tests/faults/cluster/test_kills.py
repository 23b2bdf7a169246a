"""Brokers are killed, stopped and held up under producers: what was acknowledged is there once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.audit import settle
from tests.faults.cluster.written import go_on, in_sync, written
from tests.support import depth
from tests.support.waiting import wait_for


def test_the_controller_and_leaders_are_killed(tmp_path: Path, zookeeper: str) -> None:
    pytest.importorskip("confluent_kafka")
    with written(tmp_path, zookeeper) as (cluster, writers):
        for _ in range(depth.times(2)):
            for victim in (cluster.controller, cluster.leader("own")):
                cluster.kill(victim)
                go_on(writers)
                cluster.start(victim)
                in_sync(cluster, writers)


@depth.deep
def test_two_of_three_are_killed(tmp_path: Path, zookeeper: str) -> None:
    pytest.importorskip("confluent_kafka")
    with written(tmp_path, zookeeper) as (cluster, writers):
        for victims in ((1, 2), (2, 3), (3, 1)):
            cluster.kill(*victims)
            cluster.start(*victims)
            go_on(writers)


@depth.deep
def test_all_are_killed(tmp_path: Path, zookeeper: str) -> None:
    pytest.importorskip("confluent_kafka")
    with written(tmp_path, zookeeper) as (cluster, writers):
        for _ in range(2):
            cluster.kill(*cluster.brokers)
            cluster.start(*cluster.brokers)
            go_on(writers)


@depth.deep
def test_a_rolling_restart(tmp_path: Path, zookeeper: str) -> None:
    pytest.importorskip("confluent_kafka")
    with written(tmp_path, zookeeper) as (cluster, writers):
        for id_ in cluster.brokers:
            cluster.restart(id_)
            in_sync(cluster, writers)


@depth.deep
@pytest.mark.parametrize("who", ["controller", "another"])
def test_one_is_held_up_beyond_its_session(tmp_path: Path, zookeeper: str, who: str) -> None:
    """SIGSTOP: it comes back believing that it leads what others lead by now."""
    pytest.importorskip("confluent_kafka")
    with written(tmp_path, zookeeper) as (cluster, writers):
        controller = cluster.controller
        victim = controller if who == "controller" else controller % 3 + 1
        before = cluster.brokers[victim].log.count("is registered")
        os.kill(cluster.brokers[victim].pid, signal.SIGSTOP)
        try:
            others = [broker for id_, broker in cluster.brokers.items() if id_ != victim]
            wait_for(lambda: all(cluster.sees(broker, dead=victim) for broker in others))
            go_on(writers)
        finally:
            os.kill(cluster.brokers[victim].pid, signal.SIGCONT)
        wait_for(lambda: cluster.brokers[victim].log.count("is registered") > before)


@depth.deep
def test_zookeeper_is_away_for_longer_than_a_session(
    tmp_path: Path, zookeeper: str, ensemble: Ensemble
) -> None:
    """Leaders acknowledge nothing once their sessions may be over, and go on when they can tell."""
    pytest.importorskip("confluent_kafka")
    with written(tmp_path, zookeeper) as (cluster, writers):
        ensemble.stop()
        try:
            for writer in writers:
                writer.stands_still()
        finally:
            ensemble.start()
        settle(cluster)
        in_sync(cluster, writers)


@depth.deep
def test_all_are_stopped_while_zookeeper_is_away(tmp_path: Path, zookeeper: str, ensemble: Ensemble) -> None:
    """Nobody can be told that they leave; they end all the same, and find all of it again."""
    pytest.importorskip("confluent_kafka")
    with written(tmp_path, zookeeper) as (cluster, writers):
        ensemble.stop()
        try:
            cluster.stop()
        finally:
            ensemble.start()
        cluster.start(*cluster.brokers)
        go_on(writers)
