"""The work of a controller in a cluster larger than this machine: its brokers are only names.

    python -m benchmarks.controller_scale [--brokers N] [--partitions N] [--runs N]

A real ZooKeeper server stores the partitions of all brokers, and the real controller loads, decides and
writes. The updates for the brokers are encoded, and one of them is decoded and applied as each broker does
it. Figures exclude the network, whose bytes are shown instead.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.nodes import SESSION_MS, TICK_MS
from benchmarks.report import Report
from logd.broker.cluster.controller.publisher import encoded
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.placement import Start
from logd.metadata.controller.topics import NewTopic
from logd.metadata.differences import differences
from logd.metadata.image import BrokerImage, Change, ClusterImage, Endpoint
from logd.metadata.zookeeper.cluster import prepare
from logd.metadata.zookeeper.election import Elected, elect
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from logd.metadata.zookeeper.store import ZooKeeperStore
from millstream.zookeeper.ensemble import Ensemble

PARTITIONS_A_TOPIC = 100
REPLICAS = 3
CONTROLLER = 1


def broker(id_: int, epoch: int = 1) -> BrokerImage:
    """Return a registered broker."""
    return BrokerImage(
        id=id_, epoch=epoch, endpoints=(Endpoint("PLAINTEXT", f"broker-{id_}", 9092, "PLAINTEXT"),)
    )


@dataclass
class Cost:
    """The cost of one event.

    changes: of the cluster. decide_s, encode_s: CPU seconds of the controller, for all brokers and for each.
    write_s: seconds of the write to ZooKeeper. update_bytes: for one broker. broker_s: CPU seconds of one
    broker.
    """

    changes: int = 0
    decide_s: float = 0.0
    write_s: float = 0.0
    encode_s: float = 0.0
    update_bytes: int = 0
    broker_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Seconds until a broker has applied the changes, without the network."""
        return self.decide_s + self.write_s + self.encode_s + self.broker_s


@dataclass
class World:
    """The controller with its store, and the image of one of the brokers."""

    controller: Controller
    store: ZooKeeperStore
    broker_image: ClusterImage = field(default_factory=ClusterImage)

    async def play(self, decide: Callable[[Controller], Decision[Any]]) -> Cost:
        """Decide, write and apply the changes, and publish them to the brokers."""
        cost = Cost()
        began = time.process_time()
        decision = decide(self.controller)
        cost.decide_s, cost.changes = time.process_time() - began, len(decision.changes)
        began = time.perf_counter()
        await self.store.write(decision.changes)
        cost.write_s = time.perf_counter() - began
        began = time.process_time()
        self.controller.apply(decision)
        cost.decide_s += time.process_time() - began
        self.tell(decision.changes, cost)
        return cost

    def tell(self, changes: Sequence[Change], cost: Cost) -> None:
        """Encode the update for a broker, then decode and apply it as the broker does."""
        began = time.process_time()
        update_content = encoded(changes)
        cost.decide_s += time.process_time() - began
        began = time.process_time()
        update = msgspec.json.encode(update_content)
        cost.encode_s, cost.update_bytes = time.process_time() - began, len(update)
        began = time.process_time()
        for change in msgspec.json.decode(update, type=list[Change]):
            self.broker_image.apply(change)
        cost.broker_s = time.process_time() - began


async def filled(session: Session, elected: Elected, brokers: int, partitions: int) -> World:
    """Create a cluster with `partitions` partitions of `REPLICAS` replicas each."""
    store = ZooKeeperStore(session, elected)
    controller = Controller(ClusterImage.of(await store.load()), epoch=elected.epoch)
    world = World(controller, store)
    registered = [broker(id_) for id_ in range(1, brokers + 1)]
    await world.play(lambda controller: controller.change_brokers(arrived=registered))
    for number in range(partitions // PARTITIONS_A_TOPIC):
        new = NewTopic(
            name=f"topic-{number}",
            topic_id=number.to_bytes(16, "big"),
            partitions=PARTITIONS_A_TOPIC,
            replication_factor=REPLICAS,
            start=Start(number, number),
        )
        await world.play(lambda controller, new=new: controller.create_topic(new))  # type: ignore[misc]
    return world


async def taken_over(session: Session, elected: Elected, world: World) -> Cost:
    """Load all metadata as a new controller, and send every broker a snapshot. Return the cost."""
    cost = Cost()
    live = [each.as_change() for each in world.controller.image.brokers.values()]
    began, used = time.perf_counter(), time.process_time()
    store = ZooKeeperStore(session, elected)
    image = ClusterImage.of([*await store.load(), *live])
    cost.decide_s = time.process_time() - used
    cost.write_s = time.perf_counter() - began - cost.decide_s
    used = time.process_time()
    snapshot = encoded(image.as_changes())
    cost.decide_s += time.process_time() - used
    used = time.process_time()
    update = msgspec.json.encode(snapshot)
    cost.encode_s, cost.update_bytes, cost.changes = time.process_time() - used, len(update), len(snapshot)
    used = time.process_time()
    after = ClusterImage.of(msgspec.json.decode(update, type=list[Change]))
    assert not differences(world.broker_image, after)
    cost.broker_s = time.process_time() - used
    world.controller, world.store = Controller(image, epoch=elected.epoch), store
    return cost


async def rolled(world: World, brokers: int) -> Cost:
    """Stop and restart every broker in turn, then return leadership to the preferred leaders."""
    total = Cost()
    for id_ in range(1, brokers + 1):
        epoch = world.controller.image.brokers[id_].epoch
        for decide in (
            lambda controller, id_=id_, epoch=epoch: controller.shut_down(id_, epoch),
            lambda controller, id_=id_: controller.change_brokers(departed=[id_]),
            lambda controller, id_=id_, epoch=epoch: controller.change_brokers(
                arrived=[broker(id_, epoch + 1)]
            ),
        ):
            add(total, await world.play(decide))
    add(total, await world.play(lambda controller: controller.rebalance_leaders()))
    return total


def add(total: Cost, cost: Cost) -> None:
    """Add `cost` to `total`."""
    for name in ("changes", "decide_s", "write_s", "encode_s", "update_bytes", "broker_s"):
        setattr(total, name, getattr(total, name) + getattr(cost, name))


def show(report: Report, event: str, costs: Sequence[Cost], brokers: int, target: str = "") -> None:
    """Add the figures of one kind of event to the report."""
    report.add(f"{event}: changes", [cost.changes for cost in costs])
    report.add("  controller: deciding and encoding, CPU s", [cost.decide_s for cost in costs])
    report.add("  ZooKeeper, s", [cost.write_s for cost in costs])
    report.add("  controller: for one broker more, CPU s", [cost.encode_s for cost in costs])
    report.add("  for one broker, MB", [cost.update_bytes / 1e6 for cost in costs])
    report.add("  a broker: taking it, CPU s", [cost.broker_s for cost in costs])
    report.add(
        f"  until {brokers} brokers know, s",
        [cost.total_s + cost.encode_s * (brokers - 1) for cost in costs],
        target,
    )


async def measured(connect: str, options: argparse.Namespace) -> Report:
    """Measure all events, `options.runs` times. Return the report."""
    brokers, partitions = options.brokers, options.partitions
    report = Report(f"a controller of {brokers} brokers, {partitions:,} partitions of {REPLICAS} replicas")
    settings = ZooKeeperSettings.of(connect, session_timeout_ms=SESSION_MS)
    session = await Session(settings).open()
    try:
        await prepare(session)
        elected = await elect(session, CONTROLLER, int(time.time() * 1e3))
        assert elected is not None
        began = time.perf_counter()
        world = await filled(session, elected, brokers, partitions)
        report.add("created, s", [time.perf_counter() - began])
        overs, lost, back = [], [], []
        for run in range(options.runs):
            overs.append(await taken_over(session, elected, world))
            # Another one each time: who comes back is in no ISR until it has caught up, which none does here.
            id_, again = run + 1, broker(run + 1, 2)
            lost.append(
                await world.play(lambda controller, id_=id_: controller.change_brokers(departed=[id_]))  # type: ignore[misc]
            )
            back.append(
                await world.play(lambda controller, again=again: controller.change_brokers(arrived=[again]))  # type: ignore[misc]
            )
        show(report, "takeover", overs, brokers)
        show(report, "a broker is lost", lost, brokers)
        show(report, "it comes back", back, brokers)
        show(report, "rolling restart of all", [await rolled(world, brokers)], brokers)
    finally:
        await session.close()
    return report


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--brokers", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    options, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name, Ensemble(Path(name), tick_ms=TICK_MS) as ensemble:
        asyncio.run(measured(f"{ensemble.connect_string}/bench", options)).show()


if __name__ == "__main__":
    main()
