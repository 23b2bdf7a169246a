"""Topics and ids in the logs of a starting broker that its metadata lacks, and the changes that add them.

Logs of unknown topics were written elsewhere, for instance by Apache Kafka. Partitions beyond a topic's count
were added while one of the log directories was offline. Unknown producer ids were given out by another
broker, or before a journal was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from logd.metadata.image import Change, ClusterImage, TopicImage

PRODUCER_ID_LEAP: Final = 1_000_000
"""Ids skipped after the highest id in the logs: a producer that has not written yet has its id in no log."""
PRODUCER_ID_LEAP_UNREAD: Final = 2**40
"""Ids skipped if the highest id is not known."""

Found: TypeAlias = Mapping[str, Mapping[int, bytes | None]]
"""The topic id in the recovered log of each topic and partition; None if the log has none."""


def recovered_changes(
    image: ClusterImage,
    recovered: Found,
    *,
    new_topic_id: Callable[[], bytes],
    configs_for: Callable[[str], dict[str, str]],
) -> list[Change]:
    """Return the changes that add unknown topics, and partitions beyond a topic's count."""
    changes = []
    for name, logs in recovered.items():
        existing = image.topics.get(name)
        if existing is None:
            topic_id = next(filter(None, logs.values()), None) or new_topic_id()
            topic = TopicImage(
                name=name, topic_id=topic_id, partitions=max(logs) + 1, configs=configs_for(name)
            )
            changes.append(topic.as_change())
            continue
        last = max(
            (index for index, topic_id in logs.items() if topic_id in (None, existing.topic_id)), default=-1
        )
        if last >= existing.partitions:
            changes.append(existing._replace(partitions=last + 1).as_change())
    return changes


def beyond(next_producer_id: int, producer_ids: Iterable[int]) -> int:
    """Return the next producer id to give out, when the logs contain these ids.

    If an id were given twice, the second producer's first batch would count as a duplicate of the first
    one's: acknowledged, but never stored. Ids that a log's producer state has forgotten
    (``producer.id.expiration.ms``) do no harm, since none of their batches is remembered.
    """
    highest = max(producer_ids, default=-1)
    return next_producer_id if highest < next_producer_id else highest + 1 + PRODUCER_ID_LEAP


def beyond_unread(next_producer_id: int, producer_ids: Iterable[int]) -> int:
    """Return the next producer id to give out, when unreadable logs may hold ids of another cluster.

    The result is above all of them: a cluster that gives a thousand ids a second needs 34 years for so many.
    The skipped ids are no loss: there are eight million times as many, and a start skips them at most once.
    """
    return max(next_producer_id, *producer_ids, 0) + PRODUCER_ID_LEAP_UNREAD
