"""Asking leaders where a leader epoch ends in their log (OffsetForLeaderEpoch, KIP-320)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka_client.cluster.cluster import Client
from kafka_client.errors import KafkaError, error_for
from kafka_client.fetcher.offsets import by_topic
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

CONSUMER = -1
"""As a replica id: it is no broker that asks."""


class AskedEpoch(NamedTuple):
    """An epoch whose end is wanted, and the epoch the leader is believed to lead in."""

    epoch: int
    current_leader_epoch: int


class EpochEnd(NamedTuple):
    """The largest epoch the log has that is not above the one asked for, and its end; -1: there is none."""

    epoch: int
    end_offset: int


async def epoch_ends(
    client: Client, node: int, asked: Mapping[TopicPartition, AskedEpoch]
) -> dict[TopicPartition, EpochEnd | KafkaError]:
    """What one leader says of each partition. One attempt; raises as `Client.request`."""
    request = OffsetForLeaderEpochRequest(
        replica_id=CONSUMER,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=p,
                        current_leader_epoch=asked[TopicPartition(topic, p)].current_leader_epoch,
                        leader_epoch=asked[TopicPartition(topic, p)].epoch,
                    )
                    for p in partitions
                ],
            )
            for topic, partitions in by_topic(asked).items()
        ],
    )
    response: OffsetForLeaderEpochResponse = await client.request(request, node=node)
    told: dict[TopicPartition, EpochEnd | KafkaError] = {}
    for topic in response.topics:
        for p in topic.partitions:
            tp = TopicPartition(topic.topic, p.partition)
            told[tp] = (
                error_for(p.error_code, f"where leader epoch {asked[tp].epoch} of {tp} ends")
                if p.error_code and tp in asked
                else EpochEnd(p.leader_epoch, p.end_offset)
            )
    return told
