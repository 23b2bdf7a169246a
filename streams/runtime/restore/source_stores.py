"""Stores of tables without a changelog (``reuse.ktable.source.topics``): restored from the table's own topic.

The committed position of that input is also the position of the store, so state and positions always agree.
Kafka restores the topic's bytes unchanged. Here the processed records are restored: a record that cannot be
read is dropped, as its handler dropped it before, and the time is the timestamp extractor's.
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
    """Return the input of each store that is restored from one. Without a commit nothing is restored."""
    sources: dict[str, Source] = {}
    for name, tp in changelogs.items():
        spec = topology.stores[name]
        if spec.source_topic is not None:
            convert = converter(spec.of_topic(spec.source_topic), topology.source_of(spec.source_topic))
            sources[name] = Source(positions.get(tp, 0), convert)
    return sources


def converter(spec: StoreSpec, source: SourceNode) -> Convert:
    """Return the function that converts the topic's records to the store's entries."""
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
            return {}  # The record was processed before, so its handler dropped this error.

    return convert
