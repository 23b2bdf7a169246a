"""A log directory of logd's, made ready for Apache Kafka: Kafka's controller gets logd's topics, as they are.

KRaft's controller starts an empty metadata log with the records of `bootstrap.checkpoint`, which is written
here: topics with their ids, partitions with their folder, settings, and the producer ids given out so far.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from kafka_client.records import NewRecord, build_batch
from kafka_client.wire import Message, encode
from kafka_client.wire.message import Int8, Int16, Int32, Int64, String, Uuid
from logd.metadata.image import ClusterImage, TopicImage
from logd.metadata.journal_store import FILE_NAME

FEATURES = {"metadata.version": 33, "group.version": 1, "transaction.version": 2}
"""Features of Apache Kafka 4.4, at the levels with which it formats a folder; 33 is 4.4-IV2."""

TOPIC = 2
"""The type of a resource."""
NODE_ID = 1
NO_LEADER = -1
"""Until the broker is there: then the controller has it elected."""
SNAPSHOT_HEADER, SNAPSHOT_FOOTER = b"\0\0\0\3", b"\0\0\0\4"
"""Keys of the control records around the rest."""


class _Metadata(Message):
    """A record of the metadata log: ``API_KEY`` is its type, the last of ``VERSIONS`` is what is written."""

    FLEXIBLE: ClassVar[int] = 0


class FeatureLevelRecord(_Metadata):
    """A feature the cluster goes by."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)

    name: String = ""
    feature_level: Int16 = 0


class TopicRecord(_Metadata):
    """A topic."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)

    name: String = ""
    topic_id: Uuid = bytes(16)


class PartitionRecord(_Metadata):
    """A partition and where it is."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)

    partition_id: Int32 = 0
    topic_id: Uuid = bytes(16)
    replicas: list[Int32] = []
    isr: list[Int32] = []
    removing_replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    leader: Int32 = NO_LEADER
    leader_epoch: Int32 = 0
    partition_epoch: Int32 = 0
    directories: list[Uuid] = []


class ConfigRecord(_Metadata):
    """A record of one setting."""

    API_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)

    resource_type: Int8 = TOPIC
    resource_name: String = ""
    name: String = ""
    value: String | None = None


class ProducerIdsRecord(_Metadata):
    """Producer ids from here on are free."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)

    broker_id: Int32 = NODE_ID
    broker_epoch: Int64 = 0
    next_producer_id: Int64 = 0


def hand_over(folders: Sequence[Path]) -> None:
    """Make the folders of ended logds the log.dirs of one Kafka; logs and checkpoints stay as they are.

    Topics of one name are the first folder's. Start Kafka with ``log.dirs`` in this order.
    """
    directory_ids: dict[Path, bytes] = {}
    topics: dict[str, TopicImage] = {}
    next_producer_id = 0
    cluster_id = ""
    for folder in folders:
        facts = _properties(folder)
        cluster_id = facts["cluster.id"] = cluster_id or facts["cluster.id"]
        text = "".join(f"{key}={value}\n" for key, value in facts.items())
        (folder / "meta.properties").write_text(text)
        directory_ids[folder] = base64.urlsafe_b64decode(facts["directory.id"] + "==")
        image = _image(folder)
        topics = image.topics | topics
        next_producer_id = max(next_producer_id, image.next_producer_id)
    records: list[Message] = [
        FeatureLevelRecord(name=name, feature_level=FEATURES[name]) for name in FEATURES
    ]
    records += [record for topic in topics.values() for record in _topic(topic, directory_ids)]
    records.append(ProducerIdsRecord(next_producer_id=next_producer_id))
    (folders[0] / "bootstrap.checkpoint").write_bytes(_snapshot(records))


def _image(folder: Path) -> ClusterImage:
    """Return the image in the folder's journal. Only a broker's first folder has a journal."""
    image = ClusterImage()
    journal = folder / FILE_NAME
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        for change in json.loads(line[9:]):
            image.apply(change)
    return image


def _properties(folder: Path) -> dict[str, str]:
    lines = (folder / "meta.properties").read_text().splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def _topic(topic: TopicImage, directory_ids: Mapping[Path, bytes]) -> Iterator[Message]:
    yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
    for index in range(topic.partitions):
        name = f"{topic.name}-{index}"
        # One that was killed may not have made the folder of a new partition: Kafka makes it then.
        folders = (folder for folder in directory_ids if (folder / name).exists())
        folder = next(folders, next(iter(directory_ids)))
        checkpoint = folder / name / "leader-epoch-checkpoint"
        epochs = checkpoint.read_text().split()[2::2] if checkpoint.exists() else []
        yield PartitionRecord(
            partition_id=index,
            topic_id=topic.topic_id,
            replicas=[NODE_ID],
            isr=[NODE_ID],
            leader_epoch=int(epochs[-1]) if epochs else 0,
            directories=[directory_ids[folder]],
        )
    for key, value in topic.configs.items():
        yield ConfigRecord(resource_name=topic.name, name=key, value=value)


def _snapshot(messages: Sequence[Message]) -> bytes:
    """Return a file of metadata records: frame version, record type and version, then the fields."""
    header: NewRecord = (0, SNAPSHOT_HEADER, bytes(11), ())
    footer: NewRecord = (0, SNAPSHOT_FOOTER, bytes(3), ())
    records: list[NewRecord] = []
    for message in messages:
        version = message.VERSIONS[1]
        records.append((0, None, bytes([1, message.API_KEY, version]) + encode(message, version), ()))
    return b"".join(
        build_batch(batch, base_offset=offset, leader_epoch=0, control=batch != records)
        for offset, batch in ((0, [header]), (1, records), (1 + len(records), [footer]))
    )
