"""A broker is killed with records in the kernel's cache; the next one serves them, and then the power goes.

What the first one never acknowledged, the second one lets consumers read, and its coordinators act on. So by
flush.messages it has to be on the disk before that.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from kafka_client.records import build_batch
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.faults.consumer import all_of
from tests.faults.simulation import NOW, Client, Life, SimulatedBroker, new_disk, repeatable
from tests.support import depth
from tests.support.power_loss import Crashed, PowerLossDisk

FLUSHED = {"log.flush.interval.messages": "1"}


async def write(disk: PowerLossDisk, broker: SimulatedBroker) -> None:
    client = Client(broker)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    await client.request(CreateTopicsRequest(topics=[topic]), 7)
    await broker.catalog.disk_work_ended()
    disk.crash_at = len(disk.done) + 1  # the write is made, its sync is not
    await client.produce("t", 0, build_batch([(NOW, None, b"value", ())]))


@pytest.mark.parametrize("seed", depth.seeds(8))
def test_what_is_read_after_a_kill_outlasts_a_power_loss(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    read: list[dict[int, bytes | None]] = []

    async def look(disk: PowerLossDisk, broker: SimulatedBroker) -> None:
        partition = broker.catalog.partitions["t", 0]
        read.append(all_of(partition))
        assert partition.high_watermark == len(read[-1])
        disk.crashed = True

    with repeatable(seed):
        disk = new_disk(tmp_path / "disk", rng)
        with pytest.raises(Crashed):
            Life(disk, rng, began_ms=NOW, **FLUSHED).run(partial(write, disk))
        disk.crashed, disk.crash_at = False, None
        with pytest.raises(Crashed):
            Life(disk, rng, began_ms=NOW, **FLUSHED).run(partial(look, disk))
        after = PowerLossDisk(disk.after_power_loss(tmp_path / "after"), rng)
        with pytest.raises(Crashed):
            Life(after, rng, began_ms=NOW, **FLUSHED).run(partial(look, after))
    assert read == [{0: b"value"}, {0: b"value"}]
