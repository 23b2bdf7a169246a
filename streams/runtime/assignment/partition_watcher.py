"""Watching the inputs while the application runs: new partitions are new tasks, to be shared out, and new
topics that match a pattern are new inputs.
"""

from __future__ import annotations

import asyncio
import logging

from kafka_client import Client, GroupMember
from kafka_client.errors import MillstreamError
from streams.errors import TopologyError
from streams.runtime.assignment.protocol import StreamsProtocol, count_partitions

log = logging.getLogger(__name__)


async def watch_partitions(
    client: Client, member: GroupMember, protocol: StreamsProtocol, *, every_ms: int
) -> None:
    """Make the leader join and assign again when numbers of partitions have changed, until cancelled.

    That assignment raises the errors of counts that do not fit and of missing topics.
    """
    while True:
        await asyncio.sleep(every_ms / 1000)
        if not (member.is_leader and member.is_stable):
            continue
        try:
            matched = await protocol.match()
            counts = await count_partitions(client, protocol.topology, refresh=True)
        except TopologyError:
            counts, matched = {}, {}
        except MillstreamError:
            continue  # The next round tries again.
        if counts != protocol.counts or matched != protocol.matched:
            log.info("partitions have changed from %s to %s", protocol.counts, counts)
            member.request_rejoin()
