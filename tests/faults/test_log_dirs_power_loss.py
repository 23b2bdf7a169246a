"""Random histories of a broker whose partitions move between log directories while power fails repeatedly.

The clients are those of `test_broker_power_loss`, and one more moves partitions, the coordinators' too, to
and fro (AlterReplicaLogDirs). All is flushed before it is acknowledged (`log.flush.interval.messages=1`). So
nothing that was acknowledged or read is lost, wherever the machine dies: in the middle of a move, or of the
exchange at its end. Each partition is in one log directory, and a move that was requested ends.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from kafka_client.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from logd.storage.names import FUTURE_DIRECTORY_SUFFIX
from tests.faults.actors import Actor, Unexpected
from tests.faults.simulation import NOW, Life, SimulatedBroker, repeatable, run_together
from tests.faults.test_broker_power_loss import everybody
from tests.faults.world import World
from tests.faults.world_audit import audit, audit_files
from tests.support import depth
from tests.support.power_loss import Crashed, PowerLossDisk

HISTORIES = 8
LOSSES = 4
STEPS = 7
OPERATIONS_MAX = 900
"""On the disk, in one life."""
FOLDERS = ("a", "b")


class Mover(Actor):
    """Moves any partition there is to any folder, also where it is already, which calls a move off."""

    name = "mover"

    async def step(self) -> None:
        for _ in range(2):
            keys = sorted(self.broker.catalog.partitions)
            if not keys:
                return
            topic, index = self.rng.choice(keys)
            target = self.rng.choice(self.broker.directories).path
            moved = AlterReplicaLogDirTopic(name=topic, partitions=[index])
            request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(target), topics=[moved])])
            await self.client.request(request, 2)  # the topic may be gone meanwhile
            await asyncio.sleep(self.rng.choice((0, 0.001, 0.05)))


class History:
    """A broker's lives, one after another."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(self.rng, durable=True)
        self.folder = folder
        for name in FOLDERS:  # mount points: no power loss takes them away
            (folder / "0" / name).mkdir(parents=True)
        self.disk = PowerLossDisk(folder / "0", self.rng)
        self.ended_ms = NOW
        self.intact = True
        self.deaths: list[str] = []
        self.moved = 0
        """Partitions that were elsewhere at a life's end."""
        self.begun_amid = 0
        """Lives that found the copy of a move on the disk, which the one before had died in."""

    def play(self) -> None:
        """Play all lives; the last one has to end every move."""
        for loss in range(1, LOSSES + 1):
            early = self.rng.random() < 0.3
            self.live(len(self.disk.done) + self.rng.randint(0, 150 if early else OPERATIONS_MAX))
            self.lose(self.folder / str(loss))
        self.live(None, steps=1)

    def live(self, crash_at: int | None, *, steps: int = STEPS) -> None:
        """Live once, until an operation on the disk fails or a clean stop."""
        self.disk.crashed, self.disk.crash_at = False, crash_at
        paths = [self.disk.root / name for name in FOLDERS]
        self.begun_amid += any(self.disk.root.glob(f"*/*{FUTURE_DIRECTORY_SUFFIX}"))
        life = Life(
            self.disk,
            self.rng,
            began_ms=self.ended_ms,
            **{"log.flush.interval.messages": "1", "log.dirs": ",".join(map(str, paths))},
        )

        async def work(broker: SimulatedBroker) -> None:
            audit_files(self.world, broker, intact=self.intact)
            audit_homes(broker)
            look = audit(self.world, broker, intact=self.intact)
            await run_together([look], self.disk, refusal=Unexpected)
            self.intact = True
            await broker.groups.ensure_topic()
            await broker.transactions.ensure_topic()
            self.world.internal = {
                name: topic.topic_id for name, topic in broker.catalog.topics.items() if topic.is_internal
            }
            mover = Mover(self.world, broker, random.Random(self.rng.random()))
            homes = places(broker)
            try:
                await run_together(
                    [actor.run(steps) for actor in (*everybody(self.world, broker), mover)],
                    self.disk,
                    refusal=Unexpected,
                )
                if crash_at is None:
                    await until_moved(broker)
            finally:
                now = places(broker)
                self.moved += sum(now[key] != homes[key] for key in homes.keys() & now.keys())

        try:
            life.run(work)
            self.deaths.append("a clean stop")
        except Crashed as crash:
            self.deaths.append(str(crash))
        finally:
            self.ended_ms = life.ended_ms

    def lose(self, target: Path) -> None:
        """Lose what a power loss loses, or only what a kill loses: the same disk is used then."""
        if self.rng.random() < 0.25:
            return
        self.intact = False
        self.disk = PowerLossDisk(self.disk.after_power_loss(target), self.rng)


def places(broker: SimulatedBroker) -> dict[tuple[bytes, int], Path]:
    """Return each partition's log directory, by the topic's id: a topic created again has not moved."""
    catalog = broker.catalog
    return {
        (catalog.topics[topic].topic_id, index): partition.directory.path
        for (topic, index), partition in catalog.partitions.items()
    }


def audit_homes(broker: SimulatedBroker) -> None:
    """Check that each partition is in one log directory, and its files are there."""
    for (topic, index), partition in broker.catalog.partitions.items():
        homes = [folder.path for folder in broker.directories if (topic, index) in folder.logs]
        assert homes == [partition.directory.path], f"{topic}-{index} is in {homes}"
        assert partition.log.directory.parent == partition.directory.path


async def until_moved(broker: SimulatedBroker) -> None:
    """Wait until all moves have ended, by the loop's time."""
    until = broker.loop.time() + 600
    while broker.moves.futures:
        assert broker.loop.time() < until, f"moves that do not end: {list(broker.moves.futures)}"
        await asyncio.sleep(0.5)


def play(seed: int, folder: Path) -> History:
    """Play a history and return it."""
    history = History(folder, seed)
    with repeatable(seed, history.deaths):
        history.play()
    return history


@depth.deep
@pytest.mark.parametrize("seed", depth.seeds(HISTORIES))
def test_history(seed: int, tmp_path: Path) -> None:
    play(seed, tmp_path / "disk")


@depth.deep
def test_partitions_do_move_and_machines_die_amid_it(tmp_path: Path) -> None:
    histories = [play(seed, tmp_path / str(seed)) for seed in (1000, 1001)]
    assert sum(history.moved for history in histories) > 0
    assert sum(history.begun_amid for history in histories) > 0
