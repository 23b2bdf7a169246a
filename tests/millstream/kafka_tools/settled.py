"""A player on Apache Kafka, whose controller answers a change before the broker has applied it.

The next of our tools would come too early. After each command the player waits until the broker has applied
all committed metadata of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kafka_client import Client
from kafka_client.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_client.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from tests.millstream.kafka_tools.players import Player
from tests.millstream.kafka_tools.transcript import Outcome

METADATA = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
SECONDS = 60


class Settled:
    """A player that waits after each command until the broker has applied all metadata."""

    def __init__(self, player: Player, bootstrap: str) -> None:
        self._player = player
        self._bootstrap = bootstrap

    def run(self, words: Sequence[str], stdin: str) -> Outcome:
        """Run a tool, and wait until the broker has applied the change."""
        outcome = self._player.run(words, stdin)
        asyncio.run(asyncio.wait_for(self._settle(), SECONDS))
        return outcome

    async def _settle(self) -> None:
        async with Client(self._bootstrap) as client:
            await settle(client)


async def settle(client: Client) -> None:
    """Wait until the broker has applied all that is committed in the cluster's metadata."""
    quorum: DescribeQuorumResponse = await client.request(DescribeQuorumRequest(topics=[METADATA]))
    last = quorum.topics[0].partitions[0].high_watermark - 1
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    while True:
        versions: ApiVersionsResponse = await client.request(request)
        # The features are as of what the broker has applied (KIP-584).
        if versions.finalized_features_epoch >= last:
            return
        await asyncio.sleep(0.005)
