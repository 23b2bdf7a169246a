"""Requests for the end of a leader epoch in a leader's log (OffsetForLeaderEpoch, KIP-320)."""

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
"""The replica id of a client that is no broker."""


class AskedEpoch(NamedTuple):
    """A requested epoch, and the current epoch of its leader, as far as known."""

    epoch: int
    current_leader_epoch: int


class EpochEnd(NamedTuple):
    """The largest epoch in the log that is not above the requested one, and its end; -1: there is none."""

    epoch: int
    end_offset: int


async def epoch_ends(
    client: Client, node: int, requests: Mapping[TopicPartition, AskedEpoch]
) -> dict[TopicPartition, EpochEnd | KafkaError]:
    """Return one leader's answer for each partition. It sends one request; raises what `Client.request`
    does.
    """
    request = OffsetForLeaderEpochRequest(
        replica_id=CONSUMER,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=p,
                        current_leader_epoch=requests[TopicPartition(topic, p)].current_leader_epoch,
                        leader_epoch=requests[TopicPartition(topic, p)].epoch,
                    )
                    for p in partitions
                ],
            )
            for topic, partitions in by_topic(requests).items()
        ],
    )
    response: OffsetForLeaderEpochResponse = await client.request(request, node=node)
    ends: dict[TopicPartition, EpochEnd | KafkaError] = {}
    for topic in response.topics:
        for p in topic.partitions:
            tp = TopicPartition(topic.topic, p.partition)
            ends[tp] = (
                error_for(p.error_code, f"where leader epoch {requests[tp].epoch} of {tp} ends")
                if p.error_code and tp in requests
                else EpochEnd(p.leader_epoch, p.end_offset)
            )
    return ends
