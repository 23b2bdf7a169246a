"""A client that goes away in the middle of a change of the metadata: the journal and the broker say the same
all the same.

The topic was deleted in the journal only: the broker went on serving it, and the next start had it no more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.faults.simulation import NOW, Life, SimulatedBroker, new_disk, repeatable

Change = Callable[[SimulatedBroker], Awaitable[object]]

CHANGES: dict[str, Change] = {
    "create": lambda broker: broker.catalog.create("new", 2, {}),
    "grow": lambda broker: broker.catalog.grow("t", 3),
    "configure": lambda broker: broker.catalog.configure(
        broker.catalog.topics["t"], lambda _: {"retention.ms": "5"}
    ),
    "delete": lambda broker: broker.delete_topic(broker.catalog.topics["t"]),
    "configure the broker": lambda broker: broker.change_configs(
        "", lambda _: {"message.max.bytes": "77777"}, validate_only=False
    ),
}


def state(broker: SimulatedBroker) -> object:
    topics = broker.catalog.topics.values()
    return (
        {topic.name: (len(topic.partitions), dict(topic.image.configs)) for topic in topics},
        broker.image.broker_configs,
        broker.config.topic_defaults.max_message_bytes,
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_has_begun_is_carried_out(change: str, tmp_path: Path) -> None:
    states = []

    async def cancel(broker: SimulatedBroker) -> None:
        await broker.catalog.create("t", 1, {})
        before = len(broker._disk.done)  # type: ignore[attr-defined]
        changing = asyncio.ensure_future(CHANGES[change](broker))
        while len(broker._disk.done) == before:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0)  # until the journal is written
        changing.cancel()
        await asyncio.wait([changing])
        states.append(state(broker))

    async def look(broker: SimulatedBroker) -> None:
        states.append(state(broker))

    rng = random.Random(1)
    with repeatable(1):
        disk = new_disk(tmp_path / "disk", rng)
        Life(disk, rng, began_ms=NOW).run(cancel)
        disk.crashed = False
        Life(disk, rng, began_ms=NOW).run(look)
    assert states[0] == states[1]
