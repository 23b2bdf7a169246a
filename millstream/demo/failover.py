"""`--kill-leader`: the leader of a partition is killed while flights come in, and another one takes over.

`process` kills and starts the node. The other checks show that no record is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping

from kafka_client import Admin, Client, PartitionMetadata
from kafka_client.errors import MillstreamError
from millstream.demo.checks import Check
from millstream.demo.counts import topic_ends
from millstream.demo.layout import AIRLINES, DELAYS, FLIGHTS
from millstream.demo.process import Part

PARTITION = 0
"""The partition of flights whose leader is killed."""
LOOK_S = 0.05
PATIENCE_S = 300.0
"""The timeout, far above the time of an election and of catching up."""


class Failover:
    """The failover of a leader while the demo works. `nodes`: the cluster's nodes by id."""

    def __init__(self, bootstrap: str, nodes: Mapping[int, Part], note: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._nodes = nodes
        self._note = note
        self._detail = "nobody was killed"

    async def run(self) -> Check:
        """Run the failover once and return its check."""
        holds = False
        async with Client(self._bootstrap, client_id="demo") as client:
            count = await self._until_some_are_in(client)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._fail_over(client, count)
                    await self._until_in_sync(client)
                holds = True
            except TimeoutError:
                self._detail += f"; given up after {PATIENCE_S:.0f} s"
        return Check(
            f"the leader of {FLIGHTS}-{PARTITION} is killed, all is in sync again", holds, self._detail
        )

    async def _fail_over(self, client: Client, flights: int) -> None:
        victim = await self._leader(client)
        part = self._nodes[victim]
        part.kill()
        began = time.monotonic()
        self._detail = f"node {victim} after {flights:,} flights"
        self._note(f"{part.name}: killed after {flights:,} flights; it leads {FLIGHTS}-{PARTITION}")
        try:
            leader = await self._leader(client, other_than=victim)
            seconds = time.monotonic() - began
            self._detail += f", node {leader} leads after {seconds:.1f} s"
            self._note(f"{self._nodes[leader].name}: leads {FLIGHTS}-{PARTITION}, {seconds:.1f} s after that")
        finally:
            part.start_again()

    async def _until_some_are_in(self, client: Client) -> int:
        """Wait until there are flights and return their number."""
        while True:
            with contextlib.suppress(MillstreamError, OSError):
                count = (await topic_ends(client, [FLIGHTS])).get(FLIGHTS, 0)
                if count:
                    return count
            await asyncio.sleep(LOOK_S)

    async def _leader(self, client: Client, other_than: int | None = None) -> int:
        """Wait until the partition has a leader and return its id."""
        while True:
            for partition in await self._partitions(client, FLIGHTS):
                if partition.partition == PARTITION and partition.leader in self._nodes.keys() - {other_than}:
                    return partition.leader
            await asyncio.sleep(LOOK_S)

    async def _until_in_sync(self, client: Client) -> None:
        """Wait until all replicas are in sync, also on the killed node."""
        while True:
            partitions = await self._partitions(client, FLIGHTS, AIRLINES, DELAYS)
            if partitions and all(set(partition.isr) == set(partition.replicas) for partition in partitions):
                return
            await asyncio.sleep(LOOK_S)

    async def _partitions(self, client: Client, *topics: str) -> list[PartitionMetadata]:
        """Return the partitions of the topics; none if they cannot be described now."""
        try:
            described = await Admin(client, timeout_ms=5000).describe_topics(topics)
        except (MillstreamError, OSError):
            return []
        return [partition for topic in described.values() for partition in topic.partitions.values()]
