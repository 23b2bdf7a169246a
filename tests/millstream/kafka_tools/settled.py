"""A player on Apache Kafka, where a change is answered by the controller before the broker knows of it.

Of our tools the next would come too early. Once a command has ended the broker is waited for: until it has
applied all that is committed in the cluster's metadata.
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
    """A player, and the broker it plays on."""

    def __init__(self, player: Player, bootstrap: str) -> None:
        self._player = player
        self._bootstrap = bootstrap

    def run(self, words: Sequence[str], stdin: str) -> Outcome:
        """What became of it; the broker knows of it as well."""
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
