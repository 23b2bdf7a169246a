"""Topics and ids found on disk at a start but missing in the metadata: the changes that add them.

Logs of unknown topics come from elsewhere, such as a directory that Apache Kafka wrote. Partitions beyond a
topic's count are of a topic that was added while one of its log directories was offline. Producer ids found
in logs were handed out by another broker, or by a journal that was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from logd.metadata.image import Change, ClusterImage, TopicImage

PRODUCER_ID_LEAP: Final = 1_000_000
"""Ids left out behind the highest one found: a producer that has not written yet has its id in no log."""
PRODUCER_ID_LEAP_UNREAD: Final = 2**40
"""Ids left out where it is not known which one is the highest."""

Found: TypeAlias = Mapping[str, Mapping[int, bytes | None]]
"""By topic and partition, the topic id that the log found says; None where it says none."""


def recovered_changes(
    image: ClusterImage,
    found: Found,
    *,
    new_topic_id: Callable[[], bytes],
    configs_for: Callable[[str], dict[str, str]],
) -> list[Change]:
    """Return the changes that add unknown topics, and partitions beyond a topic's count."""
    changes = []
    for name, logs in found.items():
        known = image.topics.get(name)
        if known is None:
            topic_id = next(filter(None, logs.values()), None) or new_topic_id()
            topic = TopicImage(
                name=name, topic_id=topic_id, partitions=max(logs) + 1, configs=configs_for(name)
            )
            changes.append(topic.as_change())
            continue
        last = max((index for index, said in logs.items() if said in (None, known.topic_id)), default=-1)
        if last >= known.partitions:
            changes.append(known._replace(partitions=last + 1).as_change())
    return changes


def beyond(next_producer_id: int, found: Iterable[int]) -> int:
    """Return the next producer id to hand out, when these ids were found in logs.

    An id given twice makes the second producer's first batch a duplicate of the first one's: acknowledged,
    and never stored. Of ids that a log's producer state has forgotten (``producer.id.expiration.ms``) no
    batch is remembered, so that they do no harm.
    """
    highest = max(found, default=-1)
    return next_producer_id if highest < next_producer_id else highest + 1 + PRODUCER_ID_LEAP


def beyond_unread(next_producer_id: int, found: Iterable[int]) -> int:
    """As `beyond`, when there are logs that could not be read and may hold ids that nobody here gave.

    None is beyond this one: a cluster that gives a thousand ids a second needs 34 years for so many. They are
    no loss: there are eight million times as many, and a leap is made once a start at most.
    """
    return max(next_producer_id, *found, 0) + PRODUCER_ID_LEAP_UNREAD
