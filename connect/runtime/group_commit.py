"""The commit of a sink's offsets, which a topic that was deleted meanwhile does not hold up."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafka_client import Client, Consumer, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError

_log = logging.getLogger(__name__)


async def commit_existing(
    client: Client, consumer: Consumer, offsets: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    """Commit offsets of a group's member, and return those that are committed.

    The coordinator refuses a partition of a topic that does not exist, however often it is asked. So offsets
    of topics that the cluster does not have are left out. If the topic has only not arrived at the broker
    that was asked, the next commit has its offsets. Raises what `Consumer.commit` raises.
    """
    try:
        await consumer.commit(offsets)
        return offsets
    except KafkaError as e:
        if e.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        topics = (
            await client.metadata({tp.topic for tp in offsets}, refresh=True, allow_missing=True)
        ).topics
        left = {tp: offset for tp, offset in offsets.items() if tp.topic in topics}
        if len(left) == len(offsets):
            raise
    absent = sorted({tp.topic for tp in offsets} - {tp.topic for tp in left})
    _log.warning("%s: not committed, there is no topic %s", client.client_id, ", ".join(absent))
    if left:
        await consumer.commit(left)
    return left
