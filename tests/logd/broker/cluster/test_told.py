"""Updates from the controller whose request is cancelled on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from logd.broker.cluster.controller.publisher import request_of
from logd.metadata.feed.update import Update
from logd.metadata.image import Change
from tests.logd.broker.cluster.brokers import Brokers


async def test_what_was_begun_is_taken_to_its_end(zookeeper: str, tmp_path: Path) -> None:
    """Updates are applied to the end when the connection breaks; the controller's repeated update is passed
    over.
    """
    async with Brokers(zookeeper, tmp_path, count=1) as brokers:
        member, catalog = brokers.member(1), brokers.up[1].broker.catalog
        applied: list[list[Change]] = []
        member._callbacks = replace(member._callbacks, applied=applied.append)
        inbox = member._inbox
        change = {"type": "broker-gone", "id": 9}
        update = Update(
            controller=inbox.controller,
            controller_epoch=inbox.controller_epoch,
            broker_epoch=inbox.broker_epoch,
            number=inbox._applied + 1,
            changes=[change],
        )
        async with catalog._changing:
            taking = asyncio.create_task(member.take(request_of(update)))
            await brokers.until(lambda: member._taking.locked())
            taking.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(taking, return_exceptions=True)
        assert (await member.take(request_of(update))).error_code == 0
        assert [change] in applied
