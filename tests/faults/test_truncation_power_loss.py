"""Random histories of a follower whose leaders change, on a machine that loses its power again and again.

In a simulated broker with two log directories: runs of batches are copied, the log is truncated where a new
leader's history is another one, or begun afresh; beside that it moves between the folders, is flushed in the
background, checkpoints are written. Wherever the machine dies: the log is the beginning of the history that
it had, or of the one that it was being truncated to; what was flushed of that is there; and nothing that was
truncated comes back behind what was copied since. The fault model is `tests.support.power_loss`.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_client.errors import KafkaError
from kafka_client.records import build_batch, build_end_marker, iter_batches
from logd.broker.partition.partition import Partition
from tests.faults.actors import Unexpected
from tests.faults.audit import audit_left
from tests.faults.ledger import CONFIG, Ledger
from tests.faults.simulation import NOW, Life, SimulatedBroker, repeatable, run_together
from tests.support import depth
from tests.support.power_loss import Crashed, PowerLossDisk

HISTORIES = 24
LOSSES = 4
STEPS = 20
OPERATIONS_MAX = 260
"""On the disk, in one life."""
FOLDERS = ("a", "b")
POWER_LOSSES = depth.times(6)
"""Tried for each point of a truncation."""


class Sent(NamedTuple):
    """A batch as a leader sent it."""

    base_offset: int
    next_offset: int
    epoch: int
    data: bytes


class Story:
    """`sent` is what the log holds by now; while it is truncated, `before` is what it held. Up to `promised`
    it was flushed. It begins at `start`, or at `start_before`.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        for name in FOLDERS:
            (folder / "0" / name).mkdir(parents=True)
        self.disk = PowerLossDisk(folder / "0", self.rng)
        self.sent: list[Sent] = []
        self.before: list[Sent] | None = None
        self.promised = self.start = self.start_before = 0
        self.epoch = 0
        self.ended_ms = NOW
        self.deaths: list[str] = []
        self.truncated = 0

    def play(self) -> None:
        """Play all lives; the last one has no crash."""
        for loss in range(1, LOSSES + 1):
            self.live(len(self.disk.done) + self.rng.randint(20, OPERATIONS_MAX))
            if self.rng.random() < 0.8:
                self.disk = PowerLossDisk(self.disk.after_power_loss(self.folder / str(loss)), self.rng)
        self.live(None)

    def live(self, crash_at: int | None) -> None:
        """Live once, until an operation on the disk fails or a clean stop."""
        self.disk.crashed, self.disk.crash_at = False, crash_at
        dirs = ",".join(str(self.disk.root / name) for name in FOLDERS)
        life = Life(self.disk, self.rng, began_ms=self.ended_ms, **{"log.dirs": dirs})

        async def work(broker: SimulatedBroker) -> None:
            if "t" not in broker.catalog.topics:
                assert not self.promised
                await broker.catalog.create("t", 1, {})
                self.sent, self.before, self.start = [], None, 0
            self.audit(broker.catalog.partitions["t", 0])
            works = [self.follow(broker), self.keep_house(broker), self.move(broker)]
            await run_together(works, self.disk, refusal=Unexpected)
            self.audit(broker.catalog.partitions["t", 0])

        try:
            life.run(work)
            self.deaths.append("a clean stop")
        except Crashed as crash:
            self.deaths.append(str(crash))
        finally:
            self.ended_ms = life.ended_ms

    # What goes on

    async def follow(self, broker: SimulatedBroker) -> None:
        partition = broker.catalog.partitions["t", 0]
        for _ in range(STEPS):
            await asyncio.sleep(self.rng.choice((0, 0.001, 0.01, 0.1)))
            way = self.rng.random()
            try:
                if way < 0.65:
                    self.copy(partition)
                elif way < 0.95:
                    await self.truncate(broker, partition)
                else:
                    await self.begin_afresh(broker, partition)
            except KafkaError as error:
                raise Unexpected(str(error)) from error

    def copy(self, partition: Partition) -> None:
        """Copy a run of batches, of the present epoch or a newer one.

        Some batches look like others that were cut.
        """
        rng, end = self.rng, partition.log_end_offset
        self.epoch = max(self.epoch, partition.log.latest_epoch, 0) + (rng.random() < 0.3)
        run: list[Sent] = []
        for _ in range(rng.randint(1, 8)):
            end += rng.choice((0, 0, 0, 5))
            count = rng.choice((1, 1, 3))
            facts = {"base_offset": end, "leader_epoch": self.epoch}
            if rng.random() < 0.2:
                data, count = _marker(rng, facts), 1
            elif rng.random() < 0.3:
                data = build_batch(
                    [(NOW, b"k", b"t", ())] * count,
                    producer_id=rng.choice((4, 5)),
                    producer_epoch=0,
                    base_sequence=end,
                    transactional=True,
                    **facts,
                )
            else:
                value = b"%d" % rng.randrange(3) * 150
                data = build_batch([(NOW, b"k", value, ())] * count, **facts)
            run.append(Sent(end, end + count, self.epoch, data))
            end += count
        self.sent += run
        partition.leader_epoch = self.epoch
        partition.copy(b"".join(batch.data for batch in run), NOW)

    async def truncate(self, broker: SimulatedBroker, partition: Partition) -> None:
        start, end = partition.log_start_offset, partition.log_end_offset
        offset = self.rng.randint(max(start, end - 40), end)
        self.before, self.start_before = self.sent, self.start
        self.sent = [batch for batch in self.sent if batch.next_offset <= offset]
        last = self.sent[-1].next_offset if self.sent else self.start
        self.promised = min(self.promised, last)
        await broker.truncations.truncate(partition, offset)
        self.before, self.start_before = None, self.start
        self.truncated += 1
        self.epoch += 1
        self.audit(partition)

    async def begin_afresh(self, broker: SimulatedBroker, partition: Partition) -> None:
        offset = partition.log_end_offset + self.rng.choice((1, 2, 100))
        self.before, self.start_before = self.sent, self.start
        self.sent, self.start = [], offset
        self.promised = 0
        await broker.truncations.begin_afresh(partition, offset)
        self.before, self.start_before = None, self.start
        self.epoch += 1
        self.audit(partition)

    async def keep_house(self, broker: SimulatedBroker) -> None:
        house = broker.housekeeping
        for _ in range(STEPS):
            await asyncio.sleep(self.rng.choice((0, 0.001, 0.02)))
            way = self.rng.choice((house.flush_all, house.write_checkpoints, house.close_idle_files, None))
            if way is not None:
                await way()
                continue
            partition = broker.catalog.partitions["t", 0]
            end = self.sent[-1].next_offset if self.sent else 0
            if self.before is None and partition.log.flusher.is_flushed:
                self.promised = end

    async def move(self, broker: SimulatedBroker) -> None:
        for _ in range(3):
            await asyncio.sleep(self.rng.choice((0.01, 0.1)))
            try:
                await broker.moves.alter(
                    broker.catalog.partitions["t", 0], self.rng.choice(broker.directories)
                )
            except KafkaError as error:
                raise Unexpected(str(error)) from error

    # What has to hold

    def audit(self, partition: Partition) -> None:
        """And the story goes on with what is there."""
        log = partition.log
        batches = [
            (header, bytes(chunk[position : position + header.size]))
            for chunk in partition.read_all()
            for position, header in iter_batches(chunk)
        ]
        data = [batch for _, batch in batches]
        fits = [
            story[: len(data)]
            for story in (self.sent, self.before)
            if story is not None and [batch.data for batch in story[: len(data)]] == data
        ]
        assert fits, f"what is there is neither history: {[header.base_offset for header, _ in batches]}"
        assert log.log_end_offset >= self.promised, f"{self.promised} was flushed"
        assert log.log_start_offset in (self.start, self.start_before)
        assert log.log_start_offset <= partition.high_watermark <= log.log_end_offset
        if batches:
            assert log.log_end_offset == batches[-1][0].next_offset
        for header, _ in batches:
            assert log.epoch_of(header.base_offset) == header.partition_leader_epoch
        self._audit_producers(partition, fits[0])
        self.sent, self.before = fits[0], None
        self.start = self.start_before = log.log_start_offset
        self.promised = min(self.promised, log.log_end_offset)

    def _audit_producers(self, partition: Partition, story: list[Sent]) -> None:
        """Open transactions, and those that were aborted, are those of what is there."""
        open_transactions: dict[int, int] = {}
        aborted = set()
        for batch in story:
            (_, header), *_ = iter_batches(batch.data)
            if header.is_control:
                first = open_transactions.pop(header.producer_id, None)
                is_commit = header.base_timestamp == 1
                if first is not None and not is_commit:
                    aborted.add((header.producer_id, first, header.base_offset))
            elif header.is_transactional:
                open_transactions.setdefault(header.producer_id, header.base_offset)
        log = partition.log
        open_in_log = {
            producer_id: producer.txn_first_offset
            for producer_id, producer in log.producers.producers.items()
            if producer.txn_first_offset >= 0
        }
        assert open_in_log == open_transactions
        assert {each[:3] for each in log.reader.aborted(0, log.log_end_offset)} == aborted


def _marker(rng: random.Random, facts: dict[str, int]) -> bytes:
    commit = rng.randint(0, 1)
    return build_end_marker(
        commit,
        timestamp_ms=commit,
        producer_id=rng.choice((4, 5)),
        producer_epoch=0,
        coordinator_epoch=0,
        **facts,
    )


def play(seed: int, folder: Path) -> Story:
    """Play a history and return it."""
    story = Story(folder, seed)
    with repeatable(seed, story.deaths):
        story.play()
    return story


@depth.deep
@pytest.mark.parametrize("seed", depth.seeds(HISTORIES))
def test_history(seed: int, tmp_path: Path) -> None:
    play(seed, tmp_path / "disk")


@depth.deep
def test_the_machine_dies_in_the_middle_of_truncations(tmp_path: Path) -> None:
    stories = [play(seed, tmp_path / str(seed)) for seed in range(5)]
    assert sum(story.truncated for story in stories) > 20
    assert any("truncate t-0" in death for story in stories for death in story.deaths)


@depth.deep
def test_a_kill_in_the_middle_and_then_a_power_loss(tmp_path: Path) -> None:
    """Old batches behind a cut do not come back. The kill hits when the file was cut and not synced.

    The next life writes batches as long as the old ones from the cut on, and the power fails. The old batches
    behind them were whole, and their CRC correct.
    """
    for point in itertools.count():
        ledger = Ledger(tmp_path / f"{point}", point, CONFIG.replaced(segment_bytes=1_500))
        for _ in range(14):
            ledger.append(1, 90)
        ledger.flush()
        ledger.disk.crash_at = len(ledger.disk.done) + point
        is_dead = True
        try:
            ledger.truncate(3)
            is_dead = False
        except Crashed:
            pass
        ledger.disk.crashed, ledger.disk.crash_at = False, None
        ledger.reopen(clean=False)
        for _ in range(2):
            ledger.append(1, 90)
        ledger.let_go()
        for number in range(POWER_LOSSES):
            audit_left(ledger, ledger.disk.after_power_loss(tmp_path / f"{point}-{number}"))
        if not is_dead:
            assert point > 10
            return
