"""`--kill-leader`: the leader of a partition is killed while flights come in, and another one takes over.

Killing and starting again is the part's (`process`); that nothing is lost the other checks find.
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
"""Of the flights: whoever leads it is killed."""
LOOK_S = 0.05
PATIENCE_S = 300.0
"""Far longer than another leader takes, or a node that copies what it missed."""


class Failover:
    """`run` does it once, while the demo works. `nodes`: the cluster's, by their ids."""

    def __init__(self, bootstrap: str, nodes: Mapping[int, Part], note: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._nodes = nodes
        self._note = note
        self._found = "nobody was killed"

    async def run(self) -> Check:
        """What came of it."""
        holds = False
        async with Client(self._bootstrap, client_id="demo") as client:
            count = await self._until_some_are_in(client)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._fail_over(client, count)
                    await self._until_in_sync(client)
                holds = True
            except TimeoutError:
                self._found += f"; given up after {PATIENCE_S:.0f} s"
        return Check(
            f"the leader of {FLIGHTS}-{PARTITION} is killed, all is in sync again", holds, self._found
        )

    async def _fail_over(self, client: Client, flights: int) -> None:
        victim = await self._leader(client)
        part = self._nodes[victim]
        part.kill()
        began = time.monotonic()
        self._found = f"node {victim} after {flights:,} flights"
        self._note(f"{part.name}: killed after {flights:,} flights; it leads {FLIGHTS}-{PARTITION}")
        try:
            leader = await self._leader(client, other_than=victim)
            seconds = time.monotonic() - began
            self._found += f", node {leader} leads after {seconds:.1f} s"
            self._note(f"{self._nodes[leader].name}: leads {FLIGHTS}-{PARTITION}, {seconds:.1f} s after that")
        finally:
            part.start_again()

    async def _until_some_are_in(self, client: Client) -> int:
        """How many there are then."""
        while True:
            with contextlib.suppress(MillstreamError, OSError):
                count = (await topic_ends(client, [FLIGHTS])).get(FLIGHTS, 0)
                if count:
                    return count
            await asyncio.sleep(LOOK_S)

    async def _leader(self, client: Client, other_than: int | None = None) -> int:
        """Who leads the partition, once somebody does."""
        while True:
            for partition in await self._partitions(client, FLIGHTS):
                if partition.partition == PARTITION and partition.leader in self._nodes.keys() - {other_than}:
                    return partition.leader
            await asyncio.sleep(LOOK_S)

    async def _until_in_sync(self, client: Client) -> None:
        """Until all replicas are, on the node that was killed as well."""
        while True:
            found = await self._partitions(client, FLIGHTS, AIRLINES, DELAYS)
            if found and all(set(partition.isr) == set(partition.replicas) for partition in found):
                return
            await asyncio.sleep(LOOK_S)

    async def _partitions(self, client: Client, *topics: str) -> list[PartitionMetadata]:
        """As they are now; of topics that nobody can tell of now, none."""
        try:
            found = await Admin(client, timeout_ms=5000).describe_topics(topics)
        except (MillstreamError, OSError):
            return []
        return [partition for topic in found.values() for partition in topic.partitions.values()]
