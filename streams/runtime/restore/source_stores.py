"""Stores of tables without a changelog (``reuse.ktable.source.topics``): restored from the table's own topic.

The position committed of that input says how far such a store is, so state and positions agree by themselves.
Kafka restores the topic's bytes as they are. Here what was processed is restored: a record that cannot be
read is left out, as it was when its handler let it pass, and the time is the timestamp extractor's.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client import TopicPartition
from streams.errors import RegistryUnavailable
from streams.graph import SourceNode
from streams.runtime.restore.restore import Convert, Source
from streams.state import StoreSpec
from streams.state.cache import join
from streams.topology import Topology


def sources_of(
    topology: Topology, changelogs: Mapping[str, TopicPartition], positions: Mapping[TopicPartition, int]
) -> dict[str, Source]:
    """Of those of the stores that are restored from an input; to its start, where nothing is committed."""
    found: dict[str, Source] = {}
    for name, tp in changelogs.items():
        spec = topology.stores[name]
        if spec.source_topic is not None:
            convert = converter(spec.of_topic(spec.source_topic), topology.source_of(spec.source_topic))
            found[name] = Source(positions.get(tp, 0), convert)
    return found


def converter(spec: StoreSpec, source: SourceNode) -> Convert:
    """From the topic's records to the store's entries."""
    read_key, read_value = source.key_serde.deserialize, source.value_serde.deserialize
    write_key, write_value = spec.key_serde.serialize, spec.value_serde.serialize
    time_of = source.timestamp_extractor

    def convert(timestamp: int, key: bytes, value: bytes | None) -> Mapping[bytes, bytes | None]:
        try:
            decoded_key, decoded = read_key(key), None if value is None else read_value(value)
            if time_of is not None:
                timestamp = time_of(decoded_key, decoded, timestamp)
            if timestamp < 0:
                return {}
            stored = None if decoded is None else join(write_value(decoded), timestamp)
            return {write_key(decoded_key): stored}
        except RegistryUnavailable:
            raise
        except Exception:
            return {}  # It was processed: what raised then was let pass, else nothing behind it is committed.

    return convert
