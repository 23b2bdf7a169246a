from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from logd.client import TopicPartition
from mirror.link import Link
from mirror.offsets import OffsetSync
from mirror.partition import PartitionCopy
from tests.mirror.pair import Pair, produce

NewName = Callable[[], str]


def test_offset_syncs_are_thought_of_where_something_was_acked(
    pair: Pair, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a second every partition of the link was looked at, active or not."""
    topic, looked_at = new_name(), set[TopicPartition]()
    sync = PartitionCopy.sync

    def noted(copy: PartitionCopy) -> OffsetSync | None:
        looked_at.add(copy.tp)
        return sync(copy)

    monkeypatch.setattr(PartitionCopy, "sync", noted)

    async def main() -> None:
        await pair.create(topic, 20)
        await produce(pair.dc1, topic, {7: [[(0, None, b"a", ())]]})
        async with Link(pair.link(topic)) as link:
            await link.run(until_caught_up=True)
            assert sum(status.records for status in link.status().values()) == 1
        assert looked_at == {TopicPartition(topic, 7)}

    asyncio.run(main())
