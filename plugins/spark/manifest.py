"""A committed step of the table: the files it added and the next offset of every topic-partition."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kafka_client.topic_partition import TopicPartition

FORMAT_VERSION = 1


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A Parquet file; `path` is relative to the table's folder."""

    path: str
    rows: int
    size: int


class TopicPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The next offset to read of each partition of a topic. The topic's id is hex, zeros if unknown."""

    topic_id: str
    offsets: dict[int, int] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A commit. `files` are the ones it added; `positions` are those of all topics, changed or not.

    number: 1, 2, 3 … without gaps. writer: the id of the last claim; a claim has no files. rows: of the whole
    table. value_schema, table_schema: Spark's JSON form of the values' columns and of all columns (None
    before the first batch).
    """

    version: int = FORMAT_VERSION
    number: int
    writer: str
    committed_at_ms: int
    rows: int = 0
    files: tuple[DataFile, ...] = ()
    positions: dict[str, TopicPosition] = {}
    value_schema: str | None = None
    table_schema: str | None = None

    def position(self, topic: str, partition: int) -> int | None:
        """Return the next offset to read of a partition, or None if nothing was read yet."""
        topic_position = self.positions.get(topic)
        return None if topic_position is None else topic_position.offsets.get(partition)

    def positions_after(
        self, ends: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]
    ) -> dict[str, TopicPosition]:
        """Return the positions after everything before `ends` is added to the table."""
        offsets = {topic: dict(topic_position.offsets) for topic, topic_position in self.positions.items()}
        for (topic, partition), end in ends.items():
            offsets.setdefault(topic, {})[partition] = end
        ids = {topic: topic_position.topic_id for topic, topic_position in self.positions.items()}
        ids |= topic_ids
        return {
            topic: TopicPosition(topic_id=ids[topic], offsets=offsets[topic]) for topic in sorted(offsets)
        }


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON, one field per line for people to read."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(data: bytes) -> Manifest:
    """Return the manifest. Raises ValueError if `data` is none, or has a newer format."""
    manifest = msgspec.json.decode(data, type=Manifest)
    if manifest.version > FORMAT_VERSION:
        raise ValueError(f"manifest format {manifest.version}; this version reads up to {FORMAT_VERSION}")
    return manifest
