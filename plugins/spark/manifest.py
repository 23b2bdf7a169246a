"""One committed step of the table: the files it added and where every topic-partition goes on from there."""

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
    """The next offset to read of each partition of a topic, known by its id (hex; zeros: not known)."""

    topic_id: str
    offsets: dict[int, int] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit says. `files` are those it added; `positions` are of all topics, added to or not.

    number: 1, 2, 3 … without holes. writer: who claimed the table last; a claim has no files.
    rows: of the whole table. value_schema, table_schema: Spark's JSON form of the values' and of all columns
    (None before the first batch).
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
        """The next offset to read, None where nothing was read yet."""
        known = self.positions.get(topic)
        return None if known is None else known.offsets.get(partition)

    def positions_after(
        self, ends: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]
    ) -> dict[str, TopicPosition]:
        """The positions once everything before `ends` is in the table."""
        offsets = {topic: dict(known.offsets) for topic, known in self.positions.items()}
        for (topic, partition), end in ends.items():
            offsets.setdefault(topic, {})[partition] = end
        ids = {topic: known.topic_id for topic, known in self.positions.items()} | dict(topic_ids)
        return {
            topic: TopicPosition(topic_id=ids[topic], offsets=offsets[topic]) for topic in sorted(offsets)
        }


def encode(manifest: Manifest) -> bytes:
    """JSON, one field a line, for people to read."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(data: bytes) -> Manifest:
    """The manifest; ValueError if it is none, or of a newer format."""
    manifest = msgspec.json.decode(data, type=Manifest)
    if manifest.version > FORMAT_VERSION:
        raise ValueError(f"manifest format {manifest.version}; this version reads up to {FORMAT_VERSION}")
    return manifest
