"""Many faults in any order under producers: what was acknowledged is there once, and all replicas are equal.

More seeds by MILLSTREAM_DEPTH; one that failed: `-k 'seed-N'`.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.audit import assert_kept
from tests.faults.cluster.chaos import Chaos
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.writers import ConfluentWriter, OwnWriter, Writer
from tests.support import depth
from tests.support.network import Network

FAULTS = 8
LAG_MS = 3000

SEEDS = pytest.mark.parametrize("seed", range(depth.times(1)), ids=lambda seed: f"seed-{seed}")


def disturbed(cluster: Cluster, ensemble: Ensemble, seed: int, network: Network | None = None) -> None:
    """Write to a cluster that is up, and audit it."""
    with ExitStack() as stack:
        topics = [cluster.create_topic(name) for name in ("confluent", "own")]
        kinds: tuple[type[Writer], ...] = (ConfluentWriter, OwnWriter)
        writers = [
            stack.enter_context(kind(cluster.bootstrap, topic))
            for kind, topic in zip(kinds, topics, strict=True)
        ]
        chaos = Chaos(cluster, ensemble, writers, seed, network)
        chaos.run(FAULTS)
        print(f"{assert_kept(cluster, *writers)} records; {dict(chaos.done)}")


@depth.deep
@SEEDS
def test_many_faults(tmp_path: Path, zookeeper: str, ensemble: Ensemble, seed: int) -> None:
    pytest.importorskip("confluent_kafka")
    with Cluster(tmp_path, zookeeper) as cluster:
        disturbed(cluster, ensemble, seed)


@depth.deep
@SEEDS
def test_five_brokers(tmp_path: Path, three: Ensemble, seed: int) -> None:
    """Five brokers and three servers of ZooKeeper survive a network that parts them."""
    pytest.importorskip("confluent_kafka")
    path = f"{three.connect_string}/five-{seed}"
    with (
        Network() as network,
        Cluster(tmp_path, path, 5, network=network, replica_lag_time_max_ms=LAG_MS) as cluster,
    ):
        disturbed(cluster, three, seed, network)
