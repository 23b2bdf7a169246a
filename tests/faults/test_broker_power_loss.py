"""Random histories of a whole broker on a machine that loses its power again and again.

Eight clients at once (`actors`, `writers`) create, fill, alter and delete topics. They write in transactions,
commit offsets and read. The machine dies at some operation on the disk, also in the middle of a start.
What the next life finds is compared with what the clients were told (`world_audit`). The fault model is
`tests.support.power_loss`; a broker that is killed goes on with a disk whose cache is still not written.

With ``log.flush.interval.messages=1`` nothing is lost that was acknowledged or read. Without, the disk's own
pace decides what is lost, and what is left is consistent.

`python -m tests.faults.test_broker_power_loss [seconds] [first seed]` goes on for longer.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import pytest

from tests.faults.actors import Actor, Admin, Committer, Housekeeper, Reader, Unexpected
from tests.faults.simulation import NOW, Life, SimulatedBroker, new_disk, repeatable, run_together
from tests.faults.world import World
from tests.faults.world_audit import audit, audit_files
from tests.faults.writers import Producer, Transactor
from tests.support import depth
from tests.support.power_loss import Crashed, PowerLossDisk

HISTORIES = 9
LOSSES = 3
STEPS = 7
OPERATIONS_MAX = 700
"""On the disk, in one life."""


class History:
    """A broker's lives, one after another."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.durable = seed % 3 != 2
        self.world = World(self.rng, durable=self.durable)
        self.folder = folder
        self.disk = new_disk(folder / "0", self.rng)
        self.ended_ms = NOW
        self.intact = True
        self.operations = 0
        self.deaths: list[str] = []

    def play(self) -> None:
        """Play all lives; the last one has no crash."""
        for loss in range(1, LOSSES + 1):
            early = self.rng.random() < 0.3
            self.live(len(self.disk.done) + self.rng.randint(0, 120 if early else OPERATIONS_MAX))
            self.lose(self.folder / str(loss))
        self.live(None, steps=1)

    def live(self, crash_at: int | None, *, steps: int = STEPS) -> None:
        """Live once, until an operation on the disk fails or a clean stop."""
        self.disk.crashed, self.disk.crash_at = False, crash_at
        settings = {"log.flush.interval.messages": "1"} if self.durable else {}
        life = Life(self.disk, self.rng, began_ms=self.ended_ms, **settings)

        async def work(broker: SimulatedBroker) -> None:
            audit_files(self.world, broker, intact=self.intact)
            look = audit(self.world, broker, intact=self.intact)
            await run_together([look], self.disk, refusal=Unexpected)
            self.intact = True
            await broker.groups.ensure_topic()
            await broker.transactions.ensure_topic()
            self.world.internal = {
                name: topic.topic_id for name, topic in broker.catalog.topics.items() if topic.is_internal
            }
            await run_together(
                [actor.run(steps) for actor in everybody(self.world, broker)],
                self.disk,
                refusal=Unexpected,
                lenient=not self.durable,
            )

        try:
            life.run(work)
            self.deaths.append("a clean stop")
        except Crashed as crash:
            self.deaths.append(str(crash))
        finally:
            self.ended_ms = life.ended_ms
        self.operations = len(self.disk.done)

    def lose(self, target: Path) -> None:
        """Lose what a power loss loses, or only what a kill loses: the same disk is used then."""
        if self.rng.random() < 0.25:
            return
        self.intact = False
        self.disk = PowerLossDisk(self.disk.after_power_loss(target), self.rng)


def everybody(world: World, broker: SimulatedBroker) -> list[Actor]:
    """Return an actor of each kind, and two of each writer."""

    def facts() -> tuple[World, SimulatedBroker, random.Random]:
        return world, broker, random.Random(world.rng.random())

    return [
        Admin(*facts()),
        Producer("producer0", *facts()),
        Producer("producer1", *facts()),
        Transactor("tx0", *facts(), implicit=False),
        Transactor("tx1", *facts(), implicit=True),
        Committer(*facts()),
        Reader(*facts()),
        Housekeeper(*facts()),
    ]


def play(seed: int, folder: Path) -> History:
    """Play a history and return it."""
    history = History(folder, seed)
    with repeatable(seed, history.deaths):
        history.play()
    return history


@pytest.mark.parametrize("seed", depth.seeds(HISTORIES))
def test_history(seed: int, tmp_path: Path) -> None:
    play(seed, tmp_path / "disk")


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1025, id="a first start that got no further than saying whose the folder is"),
        pytest.param(1064, id="a first start that died before its journal was on the disk"),
        pytest.param(2042, id="an epoch of a transactional id that was forgotten, not its records"),
    ],
)
def test_histories_that_were_found(seed: int, tmp_path: Path) -> None:
    play(seed, tmp_path / "disk")


@pytest.mark.parametrize("crash_at", [None, 500])
def test_a_mistake_that_the_broker_only_logs_is_found(crash_at: int | None, tmp_path: Path) -> None:
    """Also where the life ends by a power loss, as most do."""

    async def mistaken(self: object) -> None:
        raise KeyError("planted")

    with (
        repeatable(3),
        mock.patch("logd.broker.background.housekeeping.Housekeeping._flush_is_due", mistaken),
    ):
        history = History(tmp_path / "disk", 3)
        with pytest.raises(KeyError, match="planted") as raised:
            history.live(crash_at)
    assert "which went on" in raised.value.__notes__[0]


def test_a_seed_gives_the_same_history_again(tmp_path: Path) -> None:
    first, second = (play(4, tmp_path / name) for name in ("first", "second"))
    assert first.deaths == second.deaths and first.disk.done == second.disk.done


def main(seconds: float, seed: int) -> None:
    """Play histories until the time is up; a seed that fails is told, and left out."""
    until, played, acknowledged, failed = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory() as folder:
            try:
                acknowledged += play(seed, Path(folder) / "disk").world.acknowledgements
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failed += 1
                print(f"seed {seed}: {type(error).__name__}: {error} {error.__notes__}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
        played, seed = played + 1, seed + 1
    print(f"{played} histories, {acknowledged} acknowledgements, {failed} failed; next seed {seed}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(*[kind(text) for kind, text in zip((float, int), (*sys.argv[1:], "60", "1000")[:2], strict=False)])
