"""The logs that a start finds on disk, and what the cluster's metadata does not know of them yet."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from logd.metadata.recovered_topics import beyond, recovered_changes

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.metadata.image import Change, ClusterImage, TopicImage
    from logd.storage import Log, LogDirectory

log = logging.getLogger("logd.broker")


class RecoveredLogs:
    """The logs found on disk, one for every partition, by topic and index."""

    def __init__(self, logs: Mapping[str, Mapping[int, Log]]) -> None:
        self._logs = logs

    @classmethod
    def among(cls, directories: Iterable[LogDirectory], topics: Mapping[str, TopicImage]) -> RecoveredLogs:
        """Return the logs in these open log directories.

        A partition may be found twice, if a power loss undid one of a move's renames. The log with its
        topic's id is served, then the longest: the shorter log is the beginning of the longer one. The other
        log is set aside.
        """
        logs_by_topic: dict[str, dict[int, Log]] = {}
        homes: dict[TopicPartition, LogDirectory] = {}
        for directory in directories:
            for key, other in tuple(directory.logs.items()):
                logs = logs_by_topic.setdefault(key.topic, {})
                current = logs.get(key.partition)
                topic = topics.get(key.topic)
                topic_id = topic.topic_id if topic is not None else None
                if current is not None and _rank(current, topic_id) >= _rank(other, topic_id):
                    _set_aside(directory, key, homes[key])
                    continue
                if current is not None:
                    _set_aside(homes[key], key, directory)
                logs[key.partition], homes[key] = other, directory
        return cls(logs_by_topic)

    def changes(
        self,
        image: ClusterImage,
        *,
        new_topic_id: Callable[[], bytes],
        configs_for: Callable[[str], dict[str, str]],
    ) -> list[Change]:
        """Return the changes by which the metadata has all topics and producer ids of the logs found here."""
        ids = {
            name: {index: opened.topic_id for index, opened in logs.items()}
            for name, logs in self._logs.items()
        }
        changes = recovered_changes(image, ids, new_topic_id=new_topic_id, configs_for=configs_for)
        for name in self._logs.keys() - image.topics.keys():
            log.info("topic %s was found on disk and taken in", name, extra={"topic": name})
        producers = {
            producer_id
            for logs in self._logs.values()
            for opened in logs.values()
            for producer_id in opened.producers.producers
        }
        next_id = beyond(image.next_producer_id, producers)
        if next_id != image.next_producer_id:
            changes.append({"type": "producer-ids", "next": next_id})
        return changes

    def identified(self, topic: TopicImage) -> Mapping[int, Log]:
        """Return the logs of a topic. Blocks.

        A log without a topic id, which a power loss took, gets the id of the topic of its name.
        """
        logs = self._logs.get(topic.name, {})
        for opened in logs.values():
            if opened.topic_id is None:
                opened.identify(topic.topic_id)
        return logs


def _set_aside(directory: LogDirectory, key: TopicPartition, other: LogDirectory) -> None:
    place = directory.set_aside(*key)
    log.error("%s was found twice: %s serves it, the other is left in %s", key, other.path, place)


def _rank(log: Log, topic_id: bytes | None) -> tuple[bool, int]:
    return log.topic_id == topic_id, log.log_end_offset
