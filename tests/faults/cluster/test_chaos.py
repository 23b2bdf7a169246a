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

FAULTS = 8


@depth.deep
@pytest.mark.parametrize("seed", range(depth.times(1)), ids=lambda seed: f"seed-{seed}")
def test_many_faults(tmp_path: Path, zookeeper: str, ensemble: Ensemble, seed: int) -> None:
    pytest.importorskip("confluent_kafka")
    with Cluster(tmp_path, zookeeper) as cluster, ExitStack() as stack:
        topics = [cluster.create_topic(name) for name in ("confluent", "own")]
        kinds: tuple[type[Writer], ...] = (ConfluentWriter, OwnWriter)
        writers = [
            stack.enter_context(kind(cluster.bootstrap, topic))
            for kind, topic in zip(kinds, topics, strict=True)
        ]
        chaos = Chaos(cluster, ensemble, writers, seed)
        chaos.run(FAULTS)
        print(f"{assert_kept(cluster, *writers)} records; {dict(chaos.done)}")
