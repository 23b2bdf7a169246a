"""A committed step of the table: the files it added and the next offset of every topic-partition."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kafka_client.topic_partition import TopicPartition

FORMAT_VERSION = 2
"""Version 2 has compaction: a reader of version 1 would count the rows of replaced files, too."""


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A Parquet file; `path` is relative to the table's folder."""

    path: str
    rows: int
    size: int


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of a partition before the table's first one, which are added beside the live flow.

    The table has those from `start` up to `next`, and will have those up to `end`, its first offset.
    """

    start: int
    next: int
    end: int


class TopicPosition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The next offset to read of each partition of a topic. The topic's id is hex, zeros if unknown.

    starts: the first offset of each partition that the table has or would have. generation: how often the
    topic was made again; offsets and starts are those of the current one. backfills: by partition.
    """

    topic_id: str
    offsets: dict[int, int] = {}
    starts: dict[int, int] = {}
    generation: int = 0
    backfills: dict[int, Backfill] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A commit. `files` are the ones it added; `positions` are those of all topics, changed or not.

    number: 1, 2, 3 … without gaps. writer: the id of the last claim; a claim has no files. rows: of the whole
    table. removed: paths of files that compaction replaced by `files`. value_schema, table_schema: Spark's
    JSON form of the values' columns and of all columns (None before the first batch). inferred_topics: the
    topics whose fields are in `value_schema` if it was inferred. partition_columns: the columns that name the
    folders, None before the first batch.
    """

    version: int = FORMAT_VERSION
    number: int
    writer: str
    committed_at_ms: int
    rows: int = 0
    files: tuple[DataFile, ...] = ()
    removed: tuple[str, ...] = ()
    positions: dict[str, TopicPosition] = {}
    value_schema: str | None = None
    table_schema: str | None = None
    inferred_topics: tuple[str, ...] = ()
    partition_columns: tuple[str, ...] | None = None

    def position(self, topic: str, partition: int) -> int | None:
        """Return the next offset to read of a partition, or None if nothing was read yet."""
        topic_position = self.positions.get(topic)
        return None if topic_position is None else topic_position.offsets.get(partition)

    def positions_after(
        self,
        ends: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, str],
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> dict[str, TopicPosition]:
        """Return the positions after everything before `ends` is added to the table.

        `starts` are the first offsets of partitions that are new in the table. A topic with another id than
        before begins a new generation, without the offsets of the last one.
        """
        positions = dict(self.positions)
        for topic, topic_id in topic_ids.items():
            before = positions.get(topic)
            if before is not None and before.topic_id != topic_id:
                positions[topic] = TopicPosition(topic_id=topic_id, generation=before.generation + 1)
        for (topic, partition), end in ends.items():
            position = positions.get(topic) or TopicPosition(topic_id=topic_ids[topic])
            positions[topic] = msgspec.structs.replace(position, offsets=position.offsets | {partition: end})
        for (topic, partition), start in (starts or {}).items():
            position = positions[topic]
            positions[topic] = msgspec.structs.replace(position, starts=position.starts | {partition: start})
        return {topic: positions[topic] for topic in sorted(positions)}

    def next(self, committed_at_ms: int, **changes: object) -> Manifest:
        """Return a manifest that follows this one, without files, with the same state but for `changes`."""
        empty: dict[str, object] = {
            "version": FORMAT_VERSION,
            "number": self.number + 1,
            "committed_at_ms": committed_at_ms,
            "files": (),
            "removed": (),
        }
        return msgspec.structs.replace(self, **empty | changes)


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON, one field per line for people to read."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decode(data: bytes) -> Manifest:
    """Return the manifest. Raises ValueError if `data` is none, or has a newer format."""
    manifest = msgspec.json.decode(data, type=Manifest)
    if manifest.version > FORMAT_VERSION:
        raise ValueError(f"manifest format {manifest.version}; this version reads up to {FORMAT_VERSION}")
    if manifest.version == 1 and manifest.value_schema is not None:
        # The first batch's columns were those of all topics.
        return msgspec.structs.replace(manifest, inferred_topics=tuple(manifest.positions))
    return manifest
