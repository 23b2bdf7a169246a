"""A shared server of ZooKeeper for tests that do not disturb it, and a path in it for each."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import ZOOKEEPER
from tests.faults.cluster.hosted_ensemble import HostedEnsemble
from tests.faults.cluster.written import CLIENTS
from tests.support.hosts import Hosts

TICK_MS = 500
ZOOKEEPERS = [f"{ZOOKEEPER}-{number}" for number in (1, 2, 3)]
"""Hosts of an ensemble."""
_numbers = itertools.count(1)


def path_in(ensemble: Ensemble) -> str:
    """Return a path for one test."""
    return f"{ensemble.connect_string}/faults-{next(_numbers)}"


def need_zookeeper() -> None:
    """Skip the test where there is none."""
    if shutil.which("java") is None:
        pytest.skip("ZooKeeper needs Java")
    pytest.importorskip("pyspark")


def made(folder: Path, servers: int) -> Ensemble:
    need_zookeeper()
    return Ensemble(folder, servers, tick_ms=TICK_MS)


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Run a server of ZooKeeper. A test that stops it starts it again."""
    with made(tmp_path_factory.mktemp("zookeeper"), 1) as running:
        yield running


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers; who stops one starts it again."""
    with made(tmp_path_factory.mktemp("three"), 3) as running:
        yield running


@pytest.fixture
def zookeeper(ensemble: Ensemble) -> str:
    """For `zookeeper.connect`."""
    return path_in(ensemble)


@pytest.fixture(scope="session")
def hosts() -> Iterator[Hosts]:
    """For three brokers, one or more servers of ZooKeeper, and clients; who disturbs them heals them."""
    with Hosts([1, 2, 3, ZOOKEEPER, *ZOOKEEPERS, CLIENTS]) as hosts:
        yield hosts


@pytest.fixture(scope="session")
def hosted(tmp_path_factory: pytest.TempPathFactory, hosts: Hosts) -> Iterator[Ensemble]:
    """Run a server of ZooKeeper on a host. A test that stops it starts it again."""
    need_zookeeper()
    with HostedEnsemble(tmp_path_factory.mktemp("hosted"), hosts, [ZOOKEEPER], tick_ms=TICK_MS) as running:
        yield running


@pytest.fixture
def hosted_zookeeper(hosted: Ensemble, hosts: Hosts) -> Iterator[str]:
    """For `zookeeper.connect`; the network is well again behind the test."""
    yield path_in(hosted)
    hosts.heal()
