"""Changes of the cluster's metadata: requests are checked against the image and become lists of changes.

Nothing is written or applied here, and nothing waits. The image's owner (``logd.broker.topics.catalog``)
decides, writes and applies one change after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kafka_client.errors import ConfigError, ErrorCode, KafkaError
from logd.config.topic import TopicConfig
from logd.metadata.image import Change, ClusterImage, TopicImage
from logd.metadata.topic_names import CLUSTER_METADATA, check_collision, check_name

REMOTE_STORAGE: Final = "remote.storage.enable"
PARTITIONS_MAX: Final = 10_000
"""The largest number of partitions of a topic, as in Kafka."""

Alter: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Returns the new overrides for the current ones; raises KafkaError to refuse the change."""


def create_topic(
    image: ClusterImage,
    name: str,
    partitions: int,
    configs: Mapping[str, str],
    *,
    topic_id: bytes,
    defaults: TopicConfig,
) -> list[Change]:
    """Return the changes that create a topic.

    Raises KafkaError if the topic cannot be created: INVALID_TOPIC_EXCEPTION, INVALID_REQUEST,
    TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, POLICY_VIOLATION or INVALID_CONFIG.
    """
    check_name(name)
    if name == CLUSTER_METADATA:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"topic {name} is what Kafka calls its metadata: choose another name"
        )
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} already exists")
    check_collision(name, image.topics)
    _check_count(name, partitions)
    effective(configs, defaults)
    _check_remote_storage({}, configs)
    topic = TopicImage(name=name, topic_id=topic_id, partitions=partitions, configs=dict(configs))
    return [topic.as_change()]


def grow_topic(image: ClusterImage, name: str, partitions: int) -> list[Change]:
    """Return the changes that give a topic this larger number of partitions.

    Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS or POLICY_VIOLATION.
    """
    topic = image.topics.get(name)
    if topic is None:
        raise _unknown(name)
    check_growth(topic, partitions)
    return [topic._replace(partitions=partitions).as_change()]


def delete_topic(image: ClusterImage, name: str, topic_id: bytes) -> list[Change]:
    """Return the changes that delete a topic.

    Raises KafkaError(UNKNOWN_TOPIC_OR_PARTITION) if there is no such topic, or if the topic of that name has
    another id.
    """
    _topic(image, name, topic_id)
    return [{"type": "topic-deleted", "name": name}]


def alter_topic(
    image: ClusterImage, name: str, topic_id: bytes, alter: Alter, *, defaults: TopicConfig
) -> list[Change]:
    """Return the changes that replace a topic's overrides by those that ``alter`` returns.

    Raises KafkaError as ``alter`` does, INVALID_CONFIG, or UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = _topic(image, name, topic_id)
    configs = dict(alter(topic.configs))
    effective(configs, defaults)
    _check_remote_storage(topic.configs, configs)
    return [topic._replace(configs=configs).as_change()]


def alter_broker(
    image: ClusterImage, broker: str, alter: Alter, check: Callable[[Mapping[str, str]], object]
) -> list[Change]:
    """Return the changes that replace a broker's changed settings by those that ``alter`` returns.

    The broker ``""`` means all brokers. Raises KafkaError as ``alter`` and ``check`` do.
    """
    configs = dict(alter(image.broker_configs.get(broker, {})))
    check(configs)
    return [{"type": "broker-configs", "broker": broker, "configs": configs}]


def effective(configs: Mapping[str, str], defaults: TopicConfig) -> TopicConfig:
    """Return the settings of a topic with these overrides. Raises KafkaError(INVALID_CONFIG)."""
    try:
        return defaults.overridden(configs)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_remote_storage(before: Mapping[str, str], configs: Mapping[str, str]) -> None:
    """Raise KafkaError(INVALID_CONFIG) if a change switches on tiered storage, which does not exist here.

    A topic that another broker created with tiered storage keeps the setting: its other settings may be
    changed.
    """
    value = configs.get(REMOTE_STORAGE, "false")
    if value != before.get(REMOTE_STORAGE) and value.strip().lower() == "true":
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"{REMOTE_STORAGE}={value}: there is no tiered storage here, leave it out",
        )


def check_growth(topic: TopicImage, partitions: int) -> None:
    """Raise KafkaError unless the topic may have ``partitions`` partitions.

    The errors are INVALID_PARTITIONS and POLICY_VIOLATION.
    """
    if partitions <= topic.partitions:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {topic.partitions} partitions; it can grow but not to {partitions}",
        )
    _check_count(topic.name, partitions)


def _check_count(name: str, partitions: int) -> None:
    if not 1 <= partitions <= PARTITIONS_MAX:
        code = ErrorCode.INVALID_PARTITIONS if partitions < 1 else ErrorCode.POLICY_VIOLATION
        raise KafkaError(code, f"topic {name}: {partitions} partitions, 1 to {PARTITIONS_MAX} are allowed")


def _topic(image: ClusterImage, name: str, topic_id: bytes) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None or topic.topic_id != topic_id:
        raise _unknown(name)
    return topic


def _unknown(name: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
