"""The sink's state in a Delta table: a table property and transactions, read as a `Manifest`.

    property millstream.sink    the connector, its claim, the topics with their ids and first offsets, the
                                values' columns
    txn      <connector>/<topic id>/<partition>                    version = the next offset of the partition
    txn      <connector>/<topic id>/<partition>/backfill/<start>   version = the next offset of its backfill

Transactions advance in the commit that adds the rows. The property changes only with a claim, a new topic or
partition, new columns, or a request to backfill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from kafka_client.topic_partition import TopicPartition
from plugins.spark.backfilling import with_backfills
from plugins.spark.errors import PositionLost, id_text
from plugins.spark.manifest import Backfill, Manifest, TopicPosition

PROPERTY = "millstream.sink"
_VERSION = 1

TransactionVersion = Callable[[str], int | None]
"""Returns the version of the newest transaction of an application id, or None."""


class SinkProperty(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The property. `topics` are positions without offsets, whose backfills stand at their starts."""

    version: int = _VERSION
    connector: str
    writer: str
    topics: dict[str, TopicPosition] = {}
    value_schema: str | None = None
    inferred_topics: tuple[str, ...] = ()


def decode_property(text: str) -> SinkProperty:
    """Return the property. Raises ValueError if the text is none, or has a newer format."""
    decoded = msgspec.json.decode(text, type=SinkProperty)
    if decoded.version > _VERSION:
        raise ValueError(f"{PROPERTY} has format {decoded.version}; this version reads up to {_VERSION}")
    return decoded


def encode_property(value: SinkProperty) -> str:
    """Return the property's text."""
    return msgspec.json.encode(value).decode()


def property_of(state: Manifest, connector: str) -> SinkProperty:
    """Return the property of a table with this state."""
    return SinkProperty(
        connector=connector,
        writer=state.writer,
        topics={topic: _without_offsets(position) for topic, position in state.positions.items()},
        value_schema=state.value_schema,
        inferred_topics=state.inferred_topics,
    )


def positions_of(stored: SinkProperty, version: TransactionVersion) -> dict[str, TopicPosition]:
    """Return the positions, with the offsets of the transactions.

    Raises PositionLost if the table has no transaction of a partition.
    """
    positions = {}
    for topic, position in stored.topics.items():
        offsets = {}
        for partition in position.starts:
            app_id = partition_id(stored.connector, topic, position.topic_id, partition)
            offset = version(app_id)
            if offset is None:
                raise PositionLost(app_id)
            offsets[partition] = offset
        positions[topic] = msgspec.structs.replace(position, offsets=offsets)
    return _with_backfilled(stored, positions, version)


def transactions(before: Manifest, after: Manifest, connector: str) -> dict[str, int]:
    """Return the application ids whose versions differ between two states, with those of `after`."""
    earlier = dict(_versions(before, connector))
    advanced = {app_id: next for app_id, next in _versions(after, connector) if earlier.get(app_id) != next}
    return advanced | dict(_ended(before, after, connector))


def partition_id(connector: str, topic: str, topic_id: str, partition: int) -> str:
    """Return the application id of a partition. A topic without an id is known by its name."""
    return f"{connector}/{id_text(topic_id) if topic_id.strip('0') else topic}/{partition}"


def _versions(state: Manifest, connector: str) -> Iterator[tuple[str, int]]:
    for topic, position in state.positions.items():
        for partition, offset in position.offsets.items():
            app_id = partition_id(connector, topic, position.topic_id, partition)
            yield app_id, offset
            backfill = position.backfills.get(partition)
            if backfill is not None and backfill.next > backfill.start:
                yield _backfill_id(app_id, backfill), backfill.next


def _ended(before: Manifest, after: Manifest, connector: str) -> Iterator[tuple[str, int]]:
    """Yield the backfills that `before` has and that are done in `after`."""
    for topic, position in before.positions.items():
        following = after.positions[topic]
        for partition, backfill in position.backfills.items():
            if following.topic_id == position.topic_id and partition not in following.backfills:
                app_id = partition_id(connector, topic, position.topic_id, partition)
                yield _backfill_id(app_id, backfill), backfill.end


def _with_backfilled(
    stored: SinkProperty, positions: Mapping[str, TopicPosition], version: TransactionVersion
) -> dict[str, TopicPosition]:
    """Return the positions with the backfills where their transactions say; ended ones are first offsets."""
    backfills: dict[TopicPartition, Backfill] = {}
    for topic, position in positions.items():
        for partition, backfill in position.backfills.items():
            app_id = partition_id(stored.connector, topic, position.topic_id, partition)
            next = version(_backfill_id(app_id, backfill))
            at = backfill.start if next is None else next
            backfills[TopicPartition(topic, partition)] = msgspec.structs.replace(backfill, next=at)
    state = Manifest(number=0, writer="", committed_at_ms=0, positions=dict(positions))
    return with_backfills(state, backfills)


def _backfill_id(app_id: str, backfill: Backfill) -> str:
    # A later backfill of the partition begins earlier: its versions would go back under the same id.
    return f"{app_id}/backfill/{backfill.start}"


def _without_offsets(position: TopicPosition) -> TopicPosition:
    backfills = {
        partition: msgspec.structs.replace(backfill, next=backfill.start)
        for partition, backfill in position.backfills.items()
    }
    return msgspec.structs.replace(position, offsets={}, backfills=backfills)
