"""The checker says each of its words, and none of a history in which all is well."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.faults.replication.checker import Checker, Kind, Sent
from tests.faults.replication.memory_log import Batch, MemoryLog


@dataclasses.dataclass
class World:
    """Two replicas of `a b c`, all of it acknowledged and read."""

    checker: Checker = dataclasses.field(default_factory=Checker)
    logs: dict[int, MemoryLog] = dataclasses.field(default_factory=lambda: {1: MemoryLog(), 2: MemoryLog()})
    position: int = 0

    def append(self, *values: str, brokers: tuple[int, ...] = (1, 2), epoch: int = 1) -> Batch:
        for broker_id in brokers:
            batch = self.logs[broker_id].append(Batch(0, epoch, values))
            self.checker.wrote(broker_id, batch)
        return batch

    def acknowledge(self, batch: Batch, *, is_stale: bool = False) -> None:
        self.checker.acknowledge(
            batch.values, batch.base_offset, acks_all=True, broker_id=1, is_stale=is_stale
        )

    def poll(self, *batches: Batch) -> None:
        self.position = self.checker.poll("consumer", self.position, batches)

    def kinds(self) -> list[Kind]:
        self.checker.audit(self.logs)
        return [violation.kind for violation in self.checker.violations]


def all_well() -> World:
    world = World()
    for values in (("a", "b"), ("c",)):
        batch = world.append(*values)
        world.acknowledge(batch)
        world.poll(batch)
    return world


def lose_a_write(world: World) -> None:
    world.acknowledge(Batch(3, 1, ("d",)))


def overwrite(world: World) -> None:
    world.acknowledge(Batch(3, 1, ("d",)))
    world.append("e")


def move(world: World) -> None:
    world.acknowledge(Batch(3, 1, ("e",)))
    world.append("d", "e")


def leave_out(world: World) -> None:
    world.append("d")
    world.poll(world.append("e"))


def write_twice(world: World) -> None:
    world.append("a")


def write_twice_idempotently(world: World) -> None:
    world.checker.sent["a"] = Sent(5, is_idempotent=True)
    world.append("a")


def read_what_goes(world: World) -> None:
    world.poll(Batch(3, 1, ("d",)))


def read_something_else(world: World) -> None:
    world.checker.poll("another", 2, [Batch(2, 2, ("x",))])


def read_again(world: World) -> None:
    world.poll(world.logs[1].batches[1])


def be_told_to_go_back(world: World) -> None:
    world.checker.went_back("consumer", 3, 2)


def write_another_record(world: World) -> None:
    world.checker.wrote(2, Batch(2, 1, ("x",)))


def end_differently(world: World) -> None:
    world.append("d", brokers=(1,), epoch=2)
    world.append("e", brokers=(2,), epoch=3)


def end_earlier(world: World) -> None:
    world.append("d", brokers=(1,))


def lack_what_is_committed(world: World) -> None:
    assert world.checker.commit(3, world.logs[1])
    world.checker.in_sync(2, MemoryLog())


def acknowledge_late(world: World) -> None:
    world.acknowledge(world.append("d"), is_stale=True)


@pytest.mark.parametrize(
    ("happens", "kind"),
    [
        (lose_a_write, Kind.LOST_WRITE),
        (overwrite, Kind.LOST_WRITE),
        (move, Kind.INCONSISTENT_OFFSET),
        (leave_out, Kind.UNSEEN),
        (write_twice, Kind.DUPLICATE),
        (write_twice_idempotently, Kind.DUPLICATE),
        (read_what_goes, Kind.DIRTY_READ),
        (be_told_to_go_back, Kind.DIRTY_READ),
        (read_something_else, Kind.INCONSISTENT_OFFSET),
        (read_again, Kind.NON_MONOTONIC_POLL),
        (write_another_record, Kind.DIVERGED_REPLICAS),
        (end_differently, Kind.DIVERGED_REPLICAS),
        (end_earlier, Kind.DIVERGED_REPLICAS),
        (lack_what_is_committed, Kind.OUT_OF_SYNC),
        (acknowledge_late, Kind.STALE_ACKNOWLEDGEMENT),
    ],
)
def test_what_is_broken_is_said(happens: Callable[[World], None], kind: Kind) -> None:
    world = all_well()
    happens(world)
    assert kind in world.kinds()


def test_nothing_is_said_of_what_is_well() -> None:
    assert not all_well().kinds()


def test_a_producer_that_is_not_idempotent_may_write_twice_what_it_sent_twice() -> None:
    world = all_well()
    world.checker.sent["a"] = Sent(2, is_idempotent=False)
    world.append("a")
    assert not world.kinds()


def test_what_was_deleted_is_not_lost() -> None:
    world = all_well()
    world.checker.deleted_before = 2
    for log in world.logs.values():
        log.delete_before(2)
    assert not world.kinds()


def test_unclean_elections_may_lose_and_not_diverge() -> None:
    world = all_well()
    world.checker.is_unclean = True
    lose_a_write(world)
    be_told_to_go_back(world)
    assert not world.kinds()
    end_differently(world)
    assert Kind.DIVERGED_REPLICAS in world.kinds()
